#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "collectors/import/mapping.hpp"

namespace gpumeter::import {

struct File {
  std::string text;
  std::optional<double> written;  ///< Unix time of the last change; nullopt for a pipe
};

/// Larger than any result; a log that was given by mistake is refused.
inline constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// Reads all of a file, or of the standard input if `path` is "-". Waits for the end of a pipe.
Result<File> read_file(const std::string& path);

/// Sends each parcel as a datagram. An Error if one could not be sent.
Result<Done> send_parcels(std::span<const Parcel> parcels, const std::string& socket);

}  // namespace gpumeter::import
