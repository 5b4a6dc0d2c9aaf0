#include "base/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr int kStep = O_PATH | O_NOFOLLOW | O_CLOEXEC;
// O_NONBLOCK: open() must not wait for the other end of a FIFO.
constexpr int kReadFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr int kMostLinks = 40;  // as the kernel follows (path_resolution(7))
constexpr mode_t kAbove = 0755;

Error system_error(const std::string& what, int error) { return Error(what + ": " + std::strerror(error)); }

bool is_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && name.size() <= NAME_MAX;
}

/// What root creates in a user's folder is the user's. Everyone else owns what they create. A file system
/// that has no owners, or keeps its own, keeps root's.
void give(const Descriptor& made, std::uint32_t owner, std::uint32_t group) {
  if (geteuid() == 0) [[maybe_unused]]
    const int ignored = fchown(made.number(), owner, group);
}

/// Not all file systems change a mode, and most files have the right one already.
bool set_mode(const Descriptor& made, mode_t mode) {
  constexpr mode_t kModes = 07777;
  struct stat facts {};
  return (fstat(made.number(), &facts) == 0 && (facts.st_mode & kModes) == mode) ||
         fchmod(made.number(), mode) == 0;
}

/// Links of others are not followed. A second name of root's link may be in anybody's folder.
bool is_trusted_link(const struct stat& link) {
  return (link.st_uid == 0 || link.st_uid == geteuid()) && link.st_nlink == 1;
}

bool is_private(const struct stat& folder) {
  const bool is_ours = folder.st_uid == 0 || folder.st_uid == geteuid();
  return is_ours && ((folder.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (folder.st_mode & S_ISVTX) != 0);
}

/// Creates a folder in `parent`. The new one is empty and this process's own until it is given away, so that
/// nobody can have put another in its place.
Result<Done> make_in(const Descriptor& parent, const std::string& name, mode_t mode,
                     const std::string& path) {
  if (mkdirat(parent.number(), name.c_str(), S_IRWXU) != 0) {
    if (errno == EEXIST) return Done{};
    return system_error(path, errno);
  }
  const Descriptor made(
      openat(parent.number(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  struct stat above {};
  if (!made || fstat(made.number(), &facts) != 0 || fstat(parent.number(), &above) != 0) {
    return system_error(path, errno);
  }
  if (facts.st_uid != geteuid()) return Error(path + ": another user has replaced the new folder");
  if (!set_mode(made, mode)) return system_error(path, errno);
  give(made, above.st_uid, above.st_gid);
  return Done{};
}

/// Goes down a path, one component a step.
class Walk {
 public:
  Walk(const std::string& path, std::optional<mode_t> missing)
      : path_(path), missing_(missing), rest_(path), folder_(start()) {}

  Result<Done> run() {
    while (!rest_.empty()) {
      if (Result<Done> done = step(); !done) return done;
    }
    if (!folder_) return system_error(path_, errno);
    return Done{};
  }
  Descriptor take_folder() { return std::move(folder_); }
  /// Of the folders above the last one.
  bool is_private_way() const noexcept { return is_private_; }

 private:
  Descriptor start() const {
    return Descriptor(::open(rest_.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  Result<Done> step() {
    struct stat facts {};
    if (!folder_ || fstat(folder_.number(), &facts) != 0) return system_error(path_, errno);
    is_private_ = is_private_ && is_private(facts);
    const std::string name = take_name();
    if (name.empty() || name == ".") return Done{};
    Descriptor next(openat(folder_.number(), name.c_str(), kStep));
    if (!next && errno == ENOENT && missing_) {
      if (Result<Done> made = make_in(folder_, name, rest_.empty() ? *missing_ : kAbove, path_); !made) {
        return made;
      }
      next = Descriptor(openat(folder_.number(), name.c_str(), kStep));
    }
    if (!next || fstat(next.number(), &facts) != 0) return system_error(path_, errno);
    if (S_ISLNK(facts.st_mode)) return follow(next, facts, name);
    if (!S_ISDIR(facts.st_mode)) return system_error(path_, ENOTDIR);
    folder_ = std::move(next);
    return Done{};
  }

  std::string take_name() {
    std::string_view left = rest_;
    std::string name(take_until(left, '/'));
    rest_ = left.substr(std::min(left.find_first_not_of('/'), left.size()));
    return name;
  }

  Result<Done> follow(const Descriptor& link, const struct stat& facts, const std::string& name) {
    if (!is_trusted_link(facts)) {
      return Error(path_ + ": " + name + " is a link of another user, which is not followed");
    }
    if (++links_ > kMostLinks) return system_error(path_, ELOOP);
    std::array<char, PATH_MAX> target;
    const ssize_t size = readlinkat(link.number(), "", target.data(), target.size());
    if (size < 0) return system_error(path_, errno);
    rest_ = std::string(target.data(), static_cast<std::size_t>(size)) + "/" + rest_;
    if (rest_.starts_with('/')) folder_ = start();
    return Done{};
  }

  const std::string& path_;
  const std::optional<mode_t> missing_;
  std::string rest_;
  Descriptor folder_;
  bool is_private_ = true;
  int links_ = 0;
};

}  // namespace

Result<Folder> Folder::walk(const std::string& path, std::optional<mode_t> missing) {
  if (path.empty() || path.find('\0') != std::string::npos) return Error("a folder needs a path");
  Walk way(path, missing);
  if (const Result<Done> done = way.run(); !done) return done.error();
  Folder folder;
  folder.folder_ = way.take_folder();
  struct stat facts {};
  if (fstat(folder.number(), &facts) != 0) return system_error(path, errno);
  folder.path_ = path;
  folder.owner_ = facts.st_uid;
  folder.group_ = facts.st_gid;
  folder.is_private_way_ = way.is_private_way() && is_private(facts);
  return folder;
}

Result<Folder> Folder::open(const std::string& path) { return walk(path, std::nullopt); }

Result<Folder> Folder::make(const std::string& path, mode_t mode) { return walk(path, mode); }

Result<Folder> Folder::open_trusted(const std::string& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0 && errno == ENOENT) return Folder();
  Result<Folder> folder = open(path);
  if (!folder) return folder;
  if (fstat(folder->number(), &facts) != 0) return system_error(path, errno);
  const bool is_owned = facts.st_uid == 0 || facts.st_uid == geteuid();
  if (is_owned && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) return folder;
  return Error(path + ": the folder must belong to root, who alone may write in it");
}

Error Folder::failed(const std::string& name) const { return system_error(path_ + "/" + name, errno); }

Result<Descriptor> Folder::reopen() const {
  Descriptor opened(openat(folder_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return system_error(path_, errno);
  return opened;
}

std::vector<std::string> Folder::names(std::size_t most) const {
  std::vector<std::string> names;
  if (!folder_) return names;
  Result<Descriptor> listed = reopen();
  if (!listed) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(listed->number()), closedir);
  if (!folder) return names;
  [[maybe_unused]] const int owned_by_the_listing = listed->release();
  while (const dirent* const entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.' && names.size() < most) names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<struct stat> Folder::facts(const std::string& name) const {
  struct stat facts {};
  if (!folder_ || !is_name(name)) return std::nullopt;
  if (fstatat(folder_.number(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return facts;
}

bool Folder::lacks(const std::string& name) const { return !folder_ || (!facts(name) && errno == ENOENT); }

Result<Descriptor> Folder::open_file(const std::string& name) const {
  errno = EINVAL;
  Descriptor file(is_name(name) ? openat(folder_.number(), name.c_str(), kReadFile) : -1);
  struct stat facts {};
  if (!file && errno == ELOOP) return Error(path_ + "/" + name + ": is a link, which is not followed");
  if (!file || fstat(file.number(), &facts) != 0) return failed(name);
  if (!S_ISREG(facts.st_mode)) return Error(path_ + "/" + name + ": is not a regular file");
  return file;
}

Result<std::string> Folder::read(const std::string& name, std::size_t most) const {
  const Result<Descriptor> file = open_file(name);
  if (!file) return file.error();
  std::string text;
  std::array<char, 16384> piece;
  while (text.size() <= most) {
    const ssize_t got = ::read(file->number(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return failed(name);
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return Error(path_ + "/" + name + ": is larger than " + std::to_string(most) + " bytes");
}

std::optional<Folder::File> Folder::read_of(std::uint32_t owner, const std::string& name,
                                            std::size_t most) const {
  if (!folder_) return std::nullopt;
  const Result<Descriptor> file = open_file(name);
  struct stat facts {};
  if (!file || fstat(file->number(), &facts) != 0) return std::nullopt;
  const bool is_right =
      facts.st_uid == owner && facts.st_nlink == 1 && facts.st_size <= static_cast<off_t>(most);
  if (!is_right) return std::nullopt;
  File found;
  found.text.resize(most);
  const ssize_t got = pread(file->number(), found.text.data(), most, 0);
  if (got < 0) return std::nullopt;
  found.text.resize(static_cast<std::size_t>(got));
  found.modified = facts.st_mtim.tv_sec;
  return found;
}

// Containers' filters of system calls that do not know openat2(2) answer EPERM.
Descriptor Folder::open_foreign(const std::string& name, int flags) const {
  errno = EINVAL;
  if (!folder_ || !is_name(name)) return Descriptor();
  struct open_how how {};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  Descriptor opened(static_cast<int>(syscall(SYS_openat2, folder_.number(), name.c_str(), &how, sizeof how)));
  if (opened || (errno != ENOSYS && errno != EPERM)) return opened;
  return Descriptor(openat(folder_.number(), name.c_str(), flags));
}

std::optional<struct stat> Folder::foreign_facts(const std::string& name) const {
  struct stat facts {};
  const Descriptor entry = open_foreign(name, kStep);
  if (!entry || fstat(entry.number(), &facts) != 0) return std::nullopt;
  return facts;
}

Result<std::string> Folder::read_foreign(const std::string& name, const struct stat& facts,
                                         std::size_t most) const {
  const auto is_it = [&](const struct stat& now) {
    return now.st_dev == facts.st_dev && now.st_ino == facts.st_ino && now.st_size == facts.st_size &&
           now.st_nlink == facts.st_nlink && now.st_mtim.tv_sec == facts.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == facts.st_mtim.tv_nsec;
  };
  const Error changed(path_ + "/" + name + ": changed while it was read");
  const Descriptor file = open_foreign(name, kReadFile);
  struct stat now {};
  if (!file || fstat(file.number(), &now) != 0) return failed(name);
  if (!S_ISREG(now.st_mode) || !is_it(now)) return changed;
  if (now.st_size > static_cast<off_t>(most)) return Error(path_ + "/" + name + ": is too large");
  std::string text(static_cast<std::size_t>(now.st_size), '\0');
  for (std::size_t end = 0; end < text.size();) {
    const ssize_t got = pread(file.number(), text.data() + end, text.size() - end, static_cast<off_t>(end));
    if (got < 0) return failed(name);
    if (got == 0) return changed;
    end += static_cast<std::size_t>(got);
  }
  if (fstat(file.number(), &now) != 0 || !is_it(now)) return changed;
  return text;
}

Result<Descriptor> Folder::create(const std::string& name, mode_t mode) const {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  errno = EINVAL;
  Descriptor file(is_name(name) ? openat(folder_.number(), name.c_str(), kFlags, S_IRUSR | S_IWUSR) : -1);
  if (!file) return failed(name);
  if (set_mode(file, mode)) {
    give(file, owner_, group_);
    return file;
  }
  const Error error = failed(name);
  unlinkat(folder_.number(), name.c_str(), 0);
  return error;
}

Result<Descriptor> Folder::open_lock(const std::string& name, mode_t mode) const {
  if (Result<Descriptor> file = open_file(name); file || errno != ENOENT) return file;
  if (Result<Descriptor> file = create(name, mode); file || errno != EEXIST) return file;
  return open_file(name);
}

// A signal or a nearly full disk may cut a write short.
Result<Done> Folder::write(const Descriptor& file, const std::string& name, const std::string& text) const {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(file.number(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return failed(name);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

// A draft that is already there is left from a process that died, or somebody's trap: it is removed, never
// opened. Not all file systems can sync a folder: EINVAL.
Result<Done> Folder::replace(const std::string& name, const std::string& text, mode_t mode,
                             Outlives event) const {
  const std::string draft = name + ".new";
  if (const Result<Done> removed = remove(draft); !removed) return removed;
  const Result<Descriptor> file = create(draft, mode);
  if (!file) return file.error();
  Result<Done> written = write(*file, draft, text);
  if (written && event == Outlives::power_cut && fsync(file->number()) != 0) written = failed(draft);
  if (written) written = rename(draft, name);
  if (!written) {
    [[maybe_unused]] const Result<Done> ignored = remove(draft);
    return written;
  }
  if (event == Outlives::crash) return Done{};
  const Result<Descriptor> folder = reopen();
  if (!folder) return folder.error();
  if (fsync(folder->number()) != 0 && errno != EINVAL) return system_error(path_, errno);
  return Done{};
}

Result<Done> Folder::rename(const std::string& from, const std::string& to) const {
  errno = EINVAL;
  const bool is_done = is_name(from) && is_name(to) &&
                       renameat(folder_.number(), from.c_str(), folder_.number(), to.c_str()) == 0;
  if (!is_done) return failed(to);
  return Done{};
}

Result<Done> Folder::remove(const std::string& name) const {
  errno = EINVAL;
  const bool is_gone = is_name(name) && (unlinkat(folder_.number(), name.c_str(), 0) == 0 || errno == ENOENT);
  if (!is_gone) return failed(name);
  return Done{};
}

PathOfFile::PathOfFile(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  name = path.substr(slash + 1);  // npos + 1 is 0
  folder = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

namespace {

/// A path of an open file that nobody can direct elsewhere.
std::string through(int file) { return "/proc/self/fd/" + std::to_string(file); }

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(path + ": is too long for a socket");
  path.copy(address.sun_path, path.size());
  return address;
}

template <class Call>
int with_address(Call call, const Descriptor& socket, const sockaddr_un& address) {
  return call(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

/// Only a refused connection proves that no process listens any more. Another socket type, a full queue or
/// missing permission prove nothing.
bool is_left_over(const sockaddr_un& address, int type) {
  const Descriptor caller(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return with_address(connect, caller, address) != 0 && errno == ECONNREFUSED;
}

int type_of(const Descriptor& socket) {
  int type = SOCK_STREAM;
  socklen_t size = sizeof type;
  getsockopt(socket.number(), SOL_SOCKET, SO_TYPE, &type, &size);
  return type;
}

Result<Done> make_way(const Folder& folder, const std::string& name, const sockaddr_un& address, int type) {
  const auto file = folder.facts(name);
  if (!file) return Done{};
  if (!S_ISSOCK(file->st_mode)) return Error("the path names a file that is not a socket");
  if (!is_left_over(address, type)) return Error("another process listens on this socket");
  if (const auto removed = folder.remove(name); !removed) {
    return removed.error().with("cannot remove the old socket");
  }
  return Done{};
}

}  // namespace

SocketFile& SocketFile::operator=(SocketFile&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(name_, other.name_);
  std::swap(file_, other.file_);
  return *this;
}

SocketFile::~SocketFile() {
  if (!folder_) return;
  const auto now = folder_->facts(name_);
  const bool is_ours = now && now->st_dev == file_.st_dev && now->st_ino == file_.st_ino;
  if (is_ours) {
    [[maybe_unused]] const Result<Done> ignored = folder_->remove(name_);
  }
}

// bind(2) creates the file with the socket's own mode, less the umask: only the owner has access until
// chmod().
Result<SocketFile> SocketFile::bind(const Descriptor& socket, const std::string& path, mode_t mode) {
  const PathOfFile at(path);
  Result<Folder> folder = Folder::open(at.folder);
  if (!folder) return folder.error();
  SocketFile made;
  made.folder_ = std::make_unique<const Folder>(*std::move(folder));
  made.name_ = at.name;
  const bool is_safe = made.folder_->is_private_way();
  const Result<sockaddr_un> address =
      address_of(is_safe ? path : through(made.folder_->number()) + "/" + at.name);
  if (!address) return address.error();
  if (const auto way = make_way(*made.folder_, at.name, *address, type_of(socket)); !way) return way.error();
  if (fchmod(socket.number(), S_IRUSR | S_IWUSR) != 0) return system_error("fchmod", errno);
  if (with_address(::bind, socket, *address) != 0) return system_error("bind", errno);
  const Descriptor file(openat(made.folder_->number(), at.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const bool is_found = file && fstat(file.number(), &made.file_) == 0 && S_ISSOCK(made.file_.st_mode) &&
                        made.file_.st_uid == geteuid();
  if (!is_found) return Error(path + ": another process has replaced the socket's file");
  // chmod(2) has no descriptor of a socket's file but this one.
  if (chmod(through(file.number()).c_str(), mode) != 0) return system_error("chmod", errno);
  return made;
}

}  // namespace gpumeter
