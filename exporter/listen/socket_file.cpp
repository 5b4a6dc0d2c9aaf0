#include "exporter/listen/socket_file.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <system_error>

#include "base/descriptor.hpp"

namespace gpumeter {
namespace {

/// The same clients as on localhost: a TCP port has no permissions. The folder can restrict them further.
constexpr mode_t kEveryUser = 0666;

Error last_error(const std::string& what) {
  return Error(what + ": " + std::generic_category().message(errno));
}

/// Only a refused connection proves that no process listens any more. A full queue or missing permission
/// prove nothing.
bool is_left_over(const std::string& path) {
  const Descriptor caller(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return connect(caller.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

SocketFile::~SocketFile() {
  struct stat now {};
  if (path_.empty() || lstat(path_.c_str(), &now) != 0) return;
  if (now.st_dev == file_.st_dev && now.st_ino == file_.st_ino) unlink(path_.c_str());
}

Result<Done> SocketFile::make_way(const std::string& path) {
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0) return Done{};
  if (!S_ISSOCK(file.st_mode)) return Error("the path names a file that is not a socket");
  if (!is_left_over(path)) return Error("another process listens on this socket");
  if (unlink(path.c_str()) != 0) return last_error("cannot remove the old socket");
  return Done{};
}

Result<SocketFile> SocketFile::adopt(std::string path) {
  SocketFile made;
  made.path_ = std::move(path);
  if (lstat(made.path_.c_str(), &made.file_) != 0 || chmod(made.path_.c_str(), kEveryUser) != 0) {
    return last_error("chmod");
  }
  return made;
}

}  // namespace gpumeter
