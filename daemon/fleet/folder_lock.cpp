#include "daemon/fleet/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gpumeter {

// The lock is on the folder itself. A lock file that root created could not be opened by the service's user.
Result<FolderLock> FolderLock::take(const std::string& folder) {
  Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int error = errno;
  if (!opened)
    return Error(folder + ": " + std::strerror(error) + (error == EACCES ? "; run it as root" : ""));
  if (flock(opened.number(), LOCK_EX | LOCK_NB) == 0) {
    return FolderLock(std::move(opened), Holder::this_process);
  }
  const Holder holder = errno == EWOULDBLOCK ? Holder::other_process : Holder::unknown;
  return FolderLock(std::move(opened), holder);
}

}  // namespace gpumeter
