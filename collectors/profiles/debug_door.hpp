#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "collectors/profiles/door.hpp"
#include "collectors/profiles/search/ports.hpp"

namespace gpumeter::profiles {

/// The processes with a worker server of PyTorch's debug server (torch.distributed.debug, from 2.10 on), and
/// their orders. The server is HTTP/1.1: POST /handler/torch_profile?duration=SECONDS returns the trace in
/// the body (torch/distributed/debug/_handlers.py of PyTorch 2.15). It writes no file. Therefore the client
/// that asks gets the connection, sends debug_request(), and writes the file with its own permissions. The
/// trace does not pass through the daemon: that of a large model has hundreds of MB. Without a client, for a
/// condition, a thread of the daemon is the client. A Unix socket is connected to by the client: mostly only
/// the job's user has the permission.
///
/// The server takes times only, and has no limit of requests; a second one cancels the first.
class DebugDoor final : public Door {
 public:
  /// Called before each connection. An Error refuses the order. Must not block.
  using Check = std::function<Result<Done>(const tcp::Listener& listener)>;

  /// `serves_conditions`: the daemon has a folder for the traces of conditions.
  explicit DebugDoor(Check check = {}, bool serves_conditions = false)
      : check_(std::move(check)), serves_conditions_(serves_conditions) {}

  /// Replaces the list of the servers on this machine.
  void found(const std::vector<PortHolder>& servers);
  /// The user of the process.
  std::uint32_t owner(int pid) const;
  /// The path of the process's Unix socket; empty: it has a port, and an order has a connection.
  std::string socket(int pid) const;
  /// The connection to the process, which may not be established yet; once, and none if there is no order.
  Descriptor connection(int pid);
  /// The client has written the file; with an error, it has not.
  void ended(int pid, const std::string& error);

  std::vector<Process> processes() const override;
  Result<Done> ask(int pid, const Order& order, Nanoseconds now) override;
  Progress progress(int pid) const override;
  void release(int pid) override { calls_.erase(pid); }
  /// /tmp/x.json becomes /tmp/x_123.json, with the number that the daemon knows.
  std::string file_of(const Order& order, int pid, int inner_pid) const override;
  std::string_view begins() const noexcept override { return "the trace begins at once"; }
  bool serves_conditions(int pid) const noexcept override;

 private:
  struct Call {
    Descriptor connection;
    Progress progress = {Stage::taken, {}};
  };

  const Check check_;
  const bool serves_conditions_;
  std::map<int, PortHolder> servers_;  ///< by pid
  std::map<int, Call> calls_;          ///< by pid
};

/// The request for a trace of this duration.
std::string debug_request(Nanoseconds duration);

}  // namespace gpumeter::profiles
