#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "collectors/jobs/intake/settings.hpp"

namespace gpumeter::jobs {

/// A socket, and its file if the daemon made it.
class BoundSocket {
 public:
  BoundSocket() = default;
  /// Binds, and listens if `type` is SOCK_STREAM. Makes the last folder of the path if it is missing.
  /// Replaces an existing file only if it is a socket without a listener. Nobody beyond `mode` can write to
  /// the socket at any moment.
  static Result<BoundSocket> open(const std::string& path, int type, mode_t mode);
  /// A socket whose file belongs to somebody else.
  explicit BoundSocket(Descriptor passed) : descriptor_(std::move(passed)) {}

  BoundSocket(BoundSocket&&) noexcept = default;
  BoundSocket& operator=(BoundSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  /// Removes its own file, but not another one that has the same name by now.
  ~BoundSocket();

  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  int number() const noexcept { return descriptor_.number(); }

 private:
  Descriptor descriptor_;
  std::string path_;  ///< empty: the file is not ours
  struct stat file_ {};
};

/// Either may be missing.
struct JobSockets {
  BoundSocket datagram;
  BoundSocket stream;
};

/// The sockets that systemd passed, otherwise those of the configuration. Logs once which are missing.
JobSockets open_sockets(const SocketSettings& settings, std::vector<PassedSocket> passed, const Say& say);

/// Logs if the kernel queues so few datagrams of a socket that bursts get lost (net.unix.max_dgram_qlen).
void check_queue_length(const std::string& procfs, const Say& say);

}  // namespace gpumeter::jobs
