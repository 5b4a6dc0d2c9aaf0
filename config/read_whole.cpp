#include "config/read_whole.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "config/yaml_tree.hpp"

namespace gpumeter::config {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// Rejects a terminal, a pipe and most devices. Reading them may block a start or a reload for ever, and a
/// reload could not read them a second time. /dev/null is the usual name of an empty file.
bool is_readable_again(const struct stat& status) {
  return S_ISREG(status.st_mode) || (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3));
}

Error unreadable(int error) { return Error("cannot be read: " + std::generic_category().message(error)); }

}  // namespace

// Reads one byte more than the limit, which is enough to reject a larger file. O_NONBLOCK: a FIFO without a
// writer must not block the open().
Result<std::string> read_whole(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const std::unique_ptr<std::FILE, CloseFile> file(fd < 0 ? nullptr : fdopen(fd, "r"));
  struct stat status {};
  if (!file || fstat(fd, &status) != 0) return unreadable(errno);
  if (S_ISDIR(status.st_mode)) return unreadable(EISDIR);
  if (!is_readable_again(status)) return Error("is not a regular file");
  std::string text(kMaxFileBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return unreadable(errno);
  return text;
}

}  // namespace gpumeter::config
