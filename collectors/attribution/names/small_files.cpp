#include "collectors/attribution/names/small_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace gpumeter::workloads {

Result<TrustedFolder> TrustedFolder::open(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno == ENOENT) return TrustedFolder(Descriptor(), 0);
  struct stat facts {};
  if (!folder || fstat(folder.number(), &facts) != 0) return Error(path + ": " + std::strerror(errno));
  const bool is_owned = facts.st_uid == 0 || facts.st_uid == geteuid();
  if (!is_owned || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(path + ": the folder must belong to root, who alone may write in it");
  }
  return TrustedFolder(std::move(folder), facts.st_uid);
}

std::vector<std::string> TrustedFolder::names(std::size_t most) const {
  std::vector<std::string> names;
  if (!folder_) return names;
  const int listed = openat(folder_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(listed), closedir);
  if (!folder) {
    ::close(listed);
    return names;
  }
  while (const dirent* const entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.' && names.size() < most) names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

// O_NONBLOCK: a pipe in the folder must not stop the reader.
std::optional<TrustedFolder::File> TrustedFolder::read(const std::string& name, std::uint32_t owner,
                                                       std::size_t most_bytes) const {
  if (!folder_) return std::nullopt;
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Descriptor file(openat(folder_.number(), name.c_str(), kFlags));
  struct stat facts {};
  if (!file || fstat(file.number(), &facts) != 0) return std::nullopt;
  const bool is_right = S_ISREG(facts.st_mode) && facts.st_uid == owner && facts.st_nlink == 1 &&
                        facts.st_size <= static_cast<off_t>(most_bytes);
  if (!is_right) return std::nullopt;
  File found;
  found.text.resize(most_bytes);
  const ssize_t got = pread(file.number(), found.text.data(), most_bytes, 0);
  if (got < 0) return std::nullopt;
  found.text.resize(static_cast<std::size_t>(got));
  found.modified = facts.st_mtim.tv_sec;
  return found;
}

}  // namespace gpumeter::workloads
