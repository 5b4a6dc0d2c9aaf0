#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/result.hpp"
#include "collectors/jobs/intake/settings.hpp"

namespace gpumeter::jobs {

/// The datagrams that a queue holds, if the daemon creates the socket as root. All users share the queue, and
/// while it is full each message of a sender that does not wait is lost. The kernel also limits what each
/// sending socket has in the queue, by the memory of its messages: 277 short ones by default, 555 to 10 922
/// at the most (net.core.wmem_max of 208 KiB to 4 MiB). The queue therefore stays open to others while one
/// sender fills its part. packaging/sysctl has the same number.
inline constexpr int kQueueLength = 65'536;

/// A socket, and its file if the daemon created it.
class BoundSocket {
 public:
  BoundSocket() = default;
  /// Binds, and listens if `type` is SOCK_STREAM. Creates the last folder of the path if it is missing.
  static Result<BoundSocket> open(const std::string& path, int type, mode_t mode);
  /// A socket whose file is managed by another program.
  explicit BoundSocket(Descriptor passed) : descriptor_(std::move(passed)) {}

  /// Removes the socket's own file, but not another one that has the same name by now. Returns false if the
  /// daemon did not create the socket, or has removed the file.
  bool remove_file() noexcept {
    const bool was_ours = static_cast<bool>(file_);
    file_ = SocketFile();
    return was_ours;
  }

  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  int number() const noexcept { return descriptor_.number(); }
  /// The queue has kQueueLength, whatever the machine's limit is. False: not known, or shorter.
  bool has_long_queue() const noexcept { return has_long_queue_; }
  const SocketFile& file() const noexcept { return file_; }

 private:
  Descriptor descriptor_;
  SocketFile file_;
  bool has_long_queue_ = false;
};

/// Either socket may be missing.
struct JobSockets {
  BoundSocket datagram;
  BoundSocket stream;
};

/// Returns the sockets that systemd passed, otherwise opens those of the configuration. Logs each missing
/// socket once.
JobSockets open_sockets(const SocketSettings& settings, std::vector<PassedSocket> passed, const Say& say);

/// Logs if the kernel queues too few datagrams per socket, so that bursts are lost (net.unix.max_dgram_qlen).
void check_queue_length(const std::string& procfs, const Say& say);

}  // namespace gpumeter::jobs
