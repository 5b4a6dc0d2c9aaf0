#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "collectors/grpc/call.hpp"
#include "programs/profiler/desk.hpp"
#include "programs/profiler/search.hpp"

/// The profiler service of TensorFlow and JAX: gRPC on a port that the job opened by
/// jax.profiler.start_server(PORT) or tf.profiler.experimental.server.start(PORT). It has no authentication,
/// so only loopback is asked, and the caller decides who may ask. The job writes the trace itself, with its
/// own rights. Messages: profiler_service.proto and profiler_options.proto of xla/tsl/profiler/protobuf.
namespace gpumeter::profiles {

struct ServiceOrder {
  std::uint16_t port = 0;
  bool is_ip6 = false;  ///< ::1 in place of 127.0.0.1; the servers listen on both
  Nanoseconds duration = std::chrono::seconds(5);
  std::string folder;           ///< absolute, as the job sees it; TensorBoard's log folder
  std::string session;          ///< name of the trace's own folder, unique in `folder`
  std::string host;             ///< start of the trace's file name
  bool is_host_traced = false;  ///< the host's operators as well; otherwise only the device's kernels
};

/// Where the job writes the trace: FOLDER/plugins/profile/SESSION/HOST.xplane.pb, which TensorBoard reads.
std::string path_of(const ServiceOrder& order);

/// The message ProfileRequest of an order. Whole milliseconds.
std::string profile_request(const ServiceOrder& order);
/// Reads the message ProfileResponse: true if the trace is empty.
Result<bool> parse_profile_response(std::string_view message);

/// How a question for a trace ended.
struct ServiceAnswer {
  grpc::Failure failure = grpc::Failure::none;
  std::string error = {};  ///< names the port; empty: the job has written the trace to path_of()
  bool is_empty = false;   ///< the job reports that nothing was recorded; it has written no file then
};

/// Asks for a trace and waits for its end: `duration`, and 2 minutes for the job's collection and writing: a
/// trace of a second of a large model has 100 MB. `clock` must be the system's. `waker`: an eventfd that ends
/// the call, or -1; the job then drops the trace. A thread of its own.
ServiceAnswer ask_service(const ServiceOrder& order, const Clock& clock, int waker = -1);

/// A task of a thread of its own, which may outlive this object.
class Errand {
 public:
  /// `clock` must outlive the thread. The work owns what it touches; an Error is its failure. `stop` ends it.
  Errand(const Clock& clock, const std::string& thread, std::function<Result<Done>()> work,
         std::function<void()> stop);
  /// Calls `stop`, and does not wait.
  ~Errand() { stop_(); }
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;

  /// Taken, done or failed.
  Progress progress() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;
  const std::function<void()> stop_;
  Worker worker_;
};

/// The processes that opened the profiler service of TensorFlow or JAX, and their orders. Each order is a
/// call on a thread of its own ("profiler-call"), because it lasts as long as the trace. The service takes
/// times only: an order of steps is not accepted.
class ServiceDoor final : public Door {
 public:
  /// Called before each connection, on the call's thread. An Error ends the order.
  using Check = std::function<Result<Done>(const tcp::Listener& listener)>;
  static constexpr std::size_t kMostCalls = 64;  ///< threads at once; a machine has 16 GPUs at most

  /// `clock` must be the system's and outlive the threads.
  explicit ServiceDoor(const Clock& clock, Check check = {}) : clock_(clock), check_(std::move(check)) {}

  /// Replaces the list of the services on this machine. Calls under way continue.
  void found(const std::vector<PortHolder>& services);

  std::vector<Process> processes() const override;
  Result<Done> ask(int pid, const Order& order, Nanoseconds now) override;
  Progress progress(int pid) const override;
  /// Ends a call that is under way: the job drops the trace.
  void release(int pid) override { calls_.erase(pid); }

  /// /logs/x.json becomes /logs/x/plugins/profile/x/PID.xplane.pb, which TensorBoard reads. The first folder
  /// is the order's own: in /tmp, another user's folder `plugins` would be in the way.
  std::string file_of(const Order& order, int pid, int inner_pid) const override;
  std::string_view begins() const noexcept override { return "the trace begins at once"; }

 private:
  const Clock& clock_;
  const Check check_;
  std::map<int, PortHolder> services_;            ///< by pid
  std::map<int, std::unique_ptr<Errand>> calls_;  ///< by pid
};

/// The processes with a worker server of PyTorch's debug server (torch.distributed.debug, from 2.10 on), and
/// their orders. The server is HTTP/1.1: POST /handler/torch_profile?duration=SECONDS returns the trace in
/// the body (torch/distributed/debug/_handlers.py of PyTorch 2.15). It writes no file. Therefore the client
/// that asks gets the connection, sends debug_request(), and writes the file with its own permissions. The
/// trace does not pass through the program: that of a large model has hundreds of MB. Without a client, for a
/// condition, a thread of the program ("trace-fetch") is the client, because the process and the folder may
/// both be slow. A Unix socket is connected to by the client: mostly only
/// the job's user has the permission.
///
/// The server takes times only, and has no limit of requests; a second one cancels the first.
class DebugDoor final : public Door {
 public:
  /// Called before each connection. An Error refuses the order. Must not block.
  using Check = std::function<Result<Done>(const tcp::Listener& listener)>;

  /// `clock` must outlive the threads. `serves_conditions`: the program has a folder for the traces of
  /// conditions.
  explicit DebugDoor(const Clock& clock, Check check = {}, bool serves_conditions = false)
      : clock_(clock), check_(std::move(check)), serves_conditions_(serves_conditions) {}

  /// Replaces the list of the servers on this machine.
  void found(const std::vector<PortHolder>& servers);
  /// The user of the process.
  std::uint32_t owner(int pid) const;
  /// The path of the process's Unix socket; empty: it has a port, and an order has a connection.
  std::string socket(int pid) const;
  /// The connection to the process, which may not be established yet; once, and none if there is no order.
  Descriptor connection(int pid);
  /// Without a client: writes the trace of an order to its file. release() ends that, and removes an
  /// incomplete file.
  void fetch(int pid, const Order& order);
  /// The client has written the file; with an error, it has not.
  void ended(int pid, const std::string& error);

  std::vector<Process> processes() const override;
  Result<Done> ask(int pid, const Order& order, Nanoseconds now) override;
  Progress progress(int pid) const override;
  void release(int pid) override { calls_.erase(pid); }
  /// /tmp/x.json becomes /tmp/x_123.json, with the number that the program knows.
  std::string file_of(const Order& order, int pid, int inner_pid) const override;
  std::string_view begins() const noexcept override { return "the trace begins at once"; }
  bool serves_conditions(int pid) const noexcept override;

 private:
  struct Call {
    Descriptor connection;
    Progress progress = {Stage::taken, {}};
    std::unique_ptr<Errand> fetch = {};  ///< null: a client writes the file
  };

  const Clock& clock_;
  const Check check_;
  const bool serves_conditions_;
  std::map<int, PortHolder> servers_;  ///< by pid
  std::map<int, Call> calls_;          ///< by pid
};

/// The request for a trace of this duration.
std::string debug_request(Nanoseconds duration);

}  // namespace gpumeter::profiles
