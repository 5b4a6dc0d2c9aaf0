#include "programs/benchmark/guard/lock.hpp"

#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/folder.hpp"

namespace gpumeter::benchmark {
namespace {

constexpr std::chrono::milliseconds kPause{50};
constexpr int kTries = 40;

Error problem(const std::string& path, int error) {
  return Error(path + ": " + std::generic_category().message(error));
}

/// Reading is enough for a lock, so every user may take it where the package created the file.
Result<Descriptor> open_or_create(const std::string& path) {
  constexpr mode_t kReadable = 0644;
  const PathOfFile at(path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (!folder) return folder.error();
  return folder->open_lock(at.name, kReadable);
}

}  // namespace

Result<Lock> Lock::take(const std::string& path) {
  Result<Descriptor> file = open_or_create(path);
  if (!file) return file.error().with("cannot open the lock; name another file by --lock");
  int tries = 0;
  while (flock(file->number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return problem(path, errno);
    if (++tries == kTries) return Error(path + ": another process holds the lock");
    std::this_thread::sleep_for(kPause);
  }
  Descriptor openings(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!openings || inotify_add_watch(openings.number(), path.c_str(), IN_OPEN) < 0)
    return problem(path, errno).with("inotify");
  return Lock(*std::move(file), std::move(openings));
}

bool Lock::is_wanted() noexcept {
  std::array<char, 4096> events{};
  return read(openings_.number(), events.data(), events.size()) > 0;
}

}  // namespace gpumeter::benchmark
