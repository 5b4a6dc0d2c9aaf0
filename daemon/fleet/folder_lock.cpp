#include "daemon/fleet/folder_lock.hpp"

#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "base/folder.hpp"

namespace gpumeter {

// The lock is on the folder itself. A lock file that root created could not be opened by the service's user.
Result<FolderLock> FolderLock::take(const std::string& folder) {
  const Result<Folder> found = Folder::open(folder);
  if (!found) return found.error();
  Result<Descriptor> opened = found->reopen();
  if (!opened) return opened.error();
  if (flock(opened->number(), LOCK_EX | LOCK_NB) == 0) {
    return FolderLock(*std::move(opened), Holder::this_process);
  }
  const Holder holder = errno == EWOULDBLOCK ? Holder::other_process : Holder::unknown;
  return FolderLock(*std::move(opened), holder);
}

}  // namespace gpumeter
