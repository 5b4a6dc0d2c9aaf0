#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "base/descriptor.hpp"

namespace gpumeter {

/// The start of a file of /proc.
struct SmallFile {
  std::string text;
  int error = 0;         ///< errno of the failure; 0: read
  bool is_whole = true;  ///< false: the file has more bytes than the limit
};

inline SmallFile read_small_file(const std::string& path, std::size_t most) {
  constexpr std::size_t kChunk = 64U << 10U;
  SmallFile out;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return {{}, errno, true};
  while (out.text.size() <= most) {
    const std::size_t end = out.text.size();
    out.text.resize(end + kChunk);
    const ssize_t count = ::read(file.number(), out.text.data() + end, kChunk);
    out.text.resize(end + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count < 0) out.error = errno;
    if (count <= 0) return out;
  }
  out.is_whole = false;
  return out;
}

}  // namespace gpumeter
