#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "collectors/jobs/intake/notice.hpp"
#include "config/config.hpp"
#include "systemd/listen_fds.hpp"

namespace gpumeter::jobs {

/// A socket that the daemon made, and the file in which it is found.
class BoundSocket {
 public:
  BoundSocket() = default;
  /// Binds, and listens where `type` is SOCK_STREAM. Makes the folder where only that is missing. A file that
  /// is there is replaced only if it is a socket to which nobody listens. At no moment may more people write
  /// to it than `mode` says.
  static Result<BoundSocket> open(const std::string& path, int type, mode_t mode);
  /// Takes over one that was passed; its file is somebody else's.
  static BoundSocket adopt(int descriptor);

  BoundSocket(BoundSocket&&) noexcept = default;
  BoundSocket& operator=(BoundSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  /// Takes its own file away, and no other that has its name by now.
  ~BoundSocket();

  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  int number() const noexcept { return descriptor_.number(); }

 private:
  Descriptor descriptor_;
  std::string path_;  ///< empty: not ours
  struct stat file_ {};
};

/// What jobs send to; either may be missing.
struct JobSockets {
  BoundSocket datagram;
  BoundSocket stream;
};

/// Those that systemd passed, else those of the configuration. What cannot be had is said once, and the
/// daemon goes on without. All of `passed` are taken or closed.
JobSockets open_sockets(const config::Jobs& config, const std::vector<systemd::PassedSocket>& passed,
                        const Say& say);

/// Says so where the kernel holds so few datagrams of a socket that a burst is lost
/// (net.unix.max_dgram_qlen).
void check_queue_length(const std::string& procfs, const Say& say);

}  // namespace gpumeter::jobs
