#include "base/socket_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <system_error>
#include <utility>

namespace gpumeter {
namespace {

Error last_error(const std::string& what) {
  return Error(what + ": " + std::generic_category().message(errno));
}

/// A path in the folder that nobody can direct elsewhere.
std::string through(const Descriptor& file) { return "/proc/self/fd/" + std::to_string(file.number()); }

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

/// chmod(2) has no descriptor of a socket's file but this one.
Result<Done> set_mode(const Descriptor& file, mode_t mode) {
  if (chmod(through(file).c_str(), mode) != 0) return last_error("chmod");
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
  const std::string base = "/proc/self/fd/" + std::to_string(made.folder_->number()) + "/";
  const Result<sockaddr_un> address = address_of(is_safe ? path : base + at.name);
  if (!address) return address.error();
  if (const auto way = make_way(*made.folder_, at.name, *address, type_of(socket)); !way) return way.error();
  if (fchmod(socket.number(), S_IRUSR | S_IWUSR) != 0) return last_error("fchmod");
  if (with_address(::bind, socket, *address) != 0) return last_error("bind");
  const Descriptor file(openat(made.folder_->number(), at.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const bool is_found = file && fstat(file.number(), &made.file_) == 0 && S_ISSOCK(made.file_.st_mode) &&
                        made.file_.st_uid == geteuid();
  if (!is_found) return Error(path + ": another process has replaced the socket's file");
  if (const auto set = set_mode(file, mode); !set) return set.error();
  return made;
}

}  // namespace gpumeter
