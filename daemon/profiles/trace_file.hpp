#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// The file of a trace that gpumeter writes, in place of the job.
struct TraceFile {
  std::string path;
  /// uid of the job's user, who may read the file. nullopt: the file is the folder's owner's.
  std::optional<std::uint32_t> reader;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< bytes; no larger trace is written
};

/// Creates the file, which must not exist. With a reader: as root the file belongs to the reader, otherwise
/// the reader is in its access control list (acl(5)); if the file system has no such lists, the reader cannot
/// open it. Blocks as the file system does.
Result<Descriptor> create(const Folder& folder, const std::string& name, const TraceFile& file);

/// Creates the folder, which every user may list, if it is missing. Removes the oldest traces in it until the
/// rest have at most `most` bytes. Blocks as the file system does.
Result<Done> make_room(const std::string& path, std::uint64_t most);

}  // namespace gpumeter
