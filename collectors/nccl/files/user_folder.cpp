#include "collectors/nccl/files/user_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace gpumeter::nccl {
namespace {

Error failure() { return Error(std::strerror(errno)); }

Result<FileStamp> stamp_of(const struct stat& facts) {
  if (!S_ISREG(facts.st_mode)) return Error("is no plain file");
  if (facts.st_nlink != 1) return Error("has more than one name");
  return FileStamp{facts.st_ino, facts.st_size,
                   std::chrono::seconds(facts.st_mtim.tv_sec) + Nanoseconds(facts.st_mtim.tv_nsec),
                   facts.st_uid};
}

Result<FileStamp> stamp_of(const Descriptor& file) {
  struct stat facts {};
  return fstat(file.number(), &facts) == 0 ? stamp_of(facts) : failure();
}

Result<Done> read_all(const Descriptor& file, std::string& text) {
  for (std::size_t got = 0; got < text.size();) {
    const ssize_t count =
        ::pread(file.number(), text.data() + got, text.size() - got, static_cast<off_t>(got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure();
    if (count == 0) text.resize(got);
    got += static_cast<std::size_t>(count);
  }
  return Done{};
}

}  // namespace

Result<UserFolder> UserFolder::open(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno != ENOENT) return failure().with(path);
  return UserFolder(std::move(folder));
}

void UserFolder::for_each(const std::function<void(const std::string& name)>& take) const {
  if (!folder_) return;
  const int listed = openat(folder_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(listed), closedir);
  if (!folder) {
    ::close(listed);
    return;
  }
  while (const dirent* const entry = readdir(folder.get())) take(entry->d_name);
}

Result<FileStamp> UserFolder::look(const std::string& name) const {
  struct stat facts {};
  if (fstatat(folder_.number(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return failure();
  return stamp_of(facts);
}

// O_NONBLOCK: a pipe in the folder must not stop the reader.
Result<UserFolder::File> UserFolder::read(const std::string& name, std::size_t most) const {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Descriptor file(openat(folder_.number(), name.c_str(), kFlags));
  if (!file) return failure();
  const Result<FileStamp> before = stamp_of(file);
  if (!before) return before.error();
  if (before->size > static_cast<std::int64_t>(most)) {
    return Error("has " + std::to_string(before->size) + " bytes, " + std::to_string(most) + " at the most");
  }
  File found;
  found.text.resize(static_cast<std::size_t>(before->size));
  if (const Result<Done> done = read_all(file, found.text); !done) return done.error();
  const Result<FileStamp> after = stamp_of(file);
  if (!after) return after.error();
  found.stamp = *after;
  found.is_whole = *before == *after && static_cast<std::int64_t>(found.text.size()) == after->size;
  return found;
}

}  // namespace gpumeter::nccl
