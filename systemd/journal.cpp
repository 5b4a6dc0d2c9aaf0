#include "systemd/journal.hpp"

#include <sys/stat.h>
#include <sys/uio.h>

// Otherwise the macros add the source location of this call to every entry.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace gpumeter::systemd {

bool is_journal_stream(int fd, const char* journal_stream) noexcept {
  if (journal_stream == nullptr) return false;
  std::string_view text = journal_stream;
  const auto device = parse_number<std::uint64_t>(take_until(text, ':'));
  const auto inode = parse_number<std::uint64_t>(text);
  struct stat status {};
  return device && inode && fstat(fd, &status) == 0 && status.st_dev == *device && status.st_ino == *inode;
}

bool send_to_journal(std::span<const std::string> fields) {
  std::vector<iovec> parts;
  parts.reserve(fields.size());
  for (const std::string& field : fields) {
    // sendmsg() only reads the memory of an iovec.
    parts.push_back({const_cast<char*>(field.data()), field.size()});
  }
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) >= 0;
}

}  // namespace gpumeter::systemd
