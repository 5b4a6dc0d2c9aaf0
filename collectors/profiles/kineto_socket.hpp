#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "collectors/profiles/kineto_door.hpp"

namespace gpumeter::profiles {

/// A socket on which Kineto's clients ask. One thread.
///
/// Kineto ends its process if a datagram comes from a socket of another form than its own, or from one
/// without a name. An answer therefore leaves by this socket, and only to an address of the same form. In a
/// folder, the file at that address must be a socket of the sender's user, so that nobody can direct his
/// answer to the process of another user.
///
/// Where the kernel sends the sender's pidfd along (SCM_PIDFD, Linux 6.5), a process that has ended when its
/// datagram is read gets no answer, because its number may be another process's. An older kernel gives the
/// number alone.
class KinetoSocket {
 public:
  /// The abstract name "dynolog". Kineto counts the NUL behind it to the name.
  static Result<KinetoSocket> open_abstract();
  /// FOLDER/dynolog, as Kineto has it with KINETO_IPC_SOCKET_DIR. Creates the folder, in which every user may
  /// create files, and nobody remove those of others.
  static Result<KinetoSocket> open_in(const std::string& folder);

  /// Returns the answer to a datagram; empty: none.
  using Answer = std::function<std::string(const Peer&, std::string_view datagram)>;
  /// An answer could not be sent.
  using Unsent = std::function<void(const Peer&)>;

  /// Reads and answers what waits, up to 64 datagrams.
  void serve(const Answer& answer, const Unsent& unsent) const;
  int number() const noexcept { return socket_.number(); }

 private:
  KinetoSocket(jobs::BoundSocket socket, std::string folder);

  bool serve_one(const Answer& answer, const Unsent& unsent) const;
  bool send_to(const Peer& peer, const std::string& bytes) const;
  bool is_ours(std::string_view address) const noexcept;

  jobs::BoundSocket socket_;
  std::string folder_;  ///< empty: abstract
  bool has_pidfds_ = false;
};

}  // namespace gpumeter::profiles
