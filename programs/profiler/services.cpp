#include "programs/profiler/services.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <system_error>
#include <utility>

#include "base/mutex.hpp"
#include "programs/profiler/kineto.hpp"
#include "programs/profiler/traces.hpp"

namespace gpumeter::profiles {
namespace {

constexpr const char* kMethod = "/tensorflow.ProfilerService/Profile";

/// Fields of ProfileRequest.
enum : protozero::pbf_tag_type { kDuration = 1, kOptions = 4, kRoot = 5, kSession = 6, kHost = 7 };
/// Fields of ProfileOptions.
enum : protozero::pbf_tag_type {
  kHostLevel = 2,
  kDeviceLevel = 3,
  kVersion = 5,
  kHlo = 7,
  kOptionsDuration = 9,
};
/// Field of ProfileResponse.
constexpr protozero::pbf_tag_type kEmptyTrace = 7;

std::string root_of(const ServiceOrder& order) { return order.folder + "/plugins/profile"; }

std::uint64_t milliseconds_of(Nanoseconds duration) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

/// A socket whose connect() to the port of loopback may be under way.
Result<Descriptor> connecting(std::uint16_t port, bool is_ip6) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  const auto* const address =
      is_ip6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  const socklen_t length = is_ip6 ? sizeof v6 : sizeof v4;
  Descriptor out(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out && (::connect(out.number(), address, length) == 0 || errno == EINPROGRESS)) return out;
  return Error(std::generic_category().message(errno));
}

ServiceOrder order_of(const Order& order, int pid) {
  const std::filesystem::path path(order.path);
  ServiceOrder out;
  out.duration = order.extent.duration;
  out.session = path.stem().string();
  out.folder = (path.parent_path() / out.session).string();
  out.host = std::to_string(pid);
  return out;
}

/// A trace of a few seconds of a large model has hundreds of MB. The job chooses its size.
constexpr std::uint64_t kMostBytes = 512ULL << 20;
/// Of all traces in the folder; the oldest ones make room.
constexpr std::uint64_t kMostInFolder = 4 * kMostBytes;

/// The connection of a fetch, which another thread ends. Any thread.
class Connection {
 public:
  explicit Connection(Descriptor open) : open_(std::make_shared<const Descriptor>(std::move(open))) {}

  /// Returns an Error after end().
  Result<std::shared_ptr<const Descriptor>> get() GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (is_ended_) return Error("gpumeter-profiler stops");
    return open_;
  }
  void replace(Descriptor open) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    open_ = std::make_shared<const Descriptor>(std::move(open));
  }
  // A wait for the process ends with the connection.
  void end() GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_ended_ = true;
    ::shutdown(open_->number(), SHUT_RDWR);
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const Descriptor> open_ GPUMETER_GUARDED_BY(mutex_);
  bool is_ended_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::string path_of(const ServiceOrder& order) {
  return root_of(order) + "/" + order.session + "/" + order.host + ".xplane.pb";
}

std::string profile_request(const ServiceOrder& order) {
  const std::uint64_t milliseconds = milliseconds_of(order.duration);
  std::string options;
  protozero::pbf_writer opts(options);
  // With a version, the levels count as they are: the host's operators, the device's kernels, and no trace of
  // each Python call, which would slow the job.
  opts.add_uint32(kVersion, 1);
  opts.add_uint32(kHostLevel, order.is_host_traced ? 2 : 0);
  opts.add_uint32(kDeviceLevel, 1);
  opts.add_bool(kHlo, true);
  opts.add_uint64(kOptionsDuration, milliseconds);
  std::string message;
  protozero::pbf_writer request(message);
  request.add_uint64(kDuration, milliseconds);
  request.add_message(kOptions, options);
  request.add_string(kRoot, root_of(order));
  request.add_string(kSession, order.session);
  request.add_string(kHost, order.host);
  return message;
}

Result<bool> parse_profile_response(std::string_view message) {
  try {
    bool is_empty = false;
    protozero::pbf_reader reader(message.data(), message.size());
    constexpr auto kField = protozero::tag_and_type(kEmptyTrace, protozero::pbf_wire_type::varint);
    while (reader.next()) {
      if (reader.tag_and_type() == kField) {
        is_empty = reader.get_uint64() != 0;  // get_bool() would look at a byte that may not be there
      } else {
        reader.skip();
      }
    }
    return is_empty;
  } catch (const std::exception& problem) {
    return Error(std::string("not protobuf: ") + problem.what());
  }
}

ServiceAnswer ask_service(const ServiceOrder& order, const Clock& clock, int waker) {
  constexpr Nanoseconds kWrite = std::chrono::minutes(2);
  constexpr std::size_t kMostAnswer = 1U
                                      << 20U;  // jobs that write the trace themselves answer with some bytes
  const auto failed = [&](grpc::Failure failure, const std::string& message) {
    return ServiceAnswer{failure, "port " + std::to_string(order.port) + ": " + message};
  };
  Result<Descriptor> socket = connecting(order.port, order.is_ip6);
  if (!socket) return failed(grpc::Failure::unavailable, socket.error().message());
  const Nanoseconds deadline = clock.monotonic() + order.duration + kWrite;
  const grpc::Answer answer = grpc::ask(*std::move(socket), {kMethod, profile_request(order), kMostAnswer, 1},
                                        clock, deadline, waker);
  if (!answer.outcome) return failed(answer.outcome.failure, answer.outcome.message);
  const Result<bool> is_empty = parse_profile_response(answer.message);
  if (!is_empty) return failed(grpc::Failure::malformed, is_empty.error().message());
  return {.is_empty = *is_empty};
}

/// Also owned by the thread.
struct Errand::State {
  void end(const Result<Done>& how) GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    progress = how ? Progress{Stage::done, {}} : Progress{Stage::failed, how.error().message()};
  }

  mutable Mutex mutex;
  Progress progress GPUMETER_GUARDED_BY(mutex) = {Stage::taken, {}};
};

Errand::Errand(const Clock& clock, const std::string& thread, std::function<Result<Done>()> work,
               std::function<void()> stop)
    : state_(std::make_shared<State>()), stop_(std::move(stop)), worker_(clock) {
  const auto turn = [state = state_, work = std::move(work)]() -> std::optional<Nanoseconds> {
    state->end(work());
    return std::nullopt;
  };
  if (const Result<Done> started = worker_.start(thread, turn); !started) state_->end(started);
}

Progress Errand::progress() const {
  const MutexLock lock(state_->mutex);
  return state_->progress;
}

void ServiceDoor::found(const std::vector<PortHolder>& services) {
  services_.clear();
  for (const PortHolder& service : services) services_.try_emplace(service.process.pid, service);
}

std::vector<Process> ServiceDoor::processes() const {
  std::vector<Process> all;
  for (const auto& [pid, service] : services_) all.push_back({pid, service.process.uid});
  return all;
}

Result<Done> ServiceDoor::ask(int pid, const Order& order, Nanoseconds) {
  const auto service = services_.find(pid);
  if (service == services_.end()) return Error("it no longer listens on its port");
  if (calls_.contains(pid)) return Error("another request for it is under way");
  if (calls_.size() >= kMostCalls) return Error("too many requests are under way");
  if (order.extent.steps) {
    return Error("the profiler service of TensorFlow and JAX counts no steps; ask for seconds");
  }
  const tcp::Listener listener = service->second.listener;
  ServiceOrder asked = order_of(order, pid);
  asked.port = listener.port;
  asked.is_ip6 = listener.is_ip6();
  asked.is_host_traced = service->second.process.has_safe_host_trace;
  const auto stopper = std::make_shared<const Descriptor>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const auto work = [=, check = check_, &clock = clock_]() -> Result<Done> {
    if (check) {
      if (Result<Done> checked = check(listener); !checked) return checked;
    }
    const ServiceAnswer answer = ask_service(asked, clock, stopper->number());
    if (!answer.error.empty()) return Error(answer.error);
    if (answer.is_empty) return Error("the trace is empty");
    return Done{};
  };
  calls_[pid] = std::make_unique<Errand>(clock_, "profiler-call", work,
                                         [stopper] { eventfd_write(stopper->number(), 1); });
  return Done{};
}

Progress ServiceDoor::progress(int pid) const {
  const auto call = calls_.find(pid);
  return call == calls_.end() ? Progress() : call->second->progress();
}

std::string ServiceDoor::file_of(const Order& order, int pid, int) const {
  return path_of(order_of(order, pid));
}

std::string debug_request(Nanoseconds duration) {
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3f", to_seconds(duration));
  return "POST /handler/torch_profile?duration=" + std::string(seconds.data()) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
}

void DebugDoor::found(const std::vector<PortHolder>& servers) {
  servers_.clear();
  for (const PortHolder& server : servers) servers_.try_emplace(server.process.pid, server);
}

std::vector<Process> DebugDoor::processes() const {
  std::vector<Process> all;
  for (const auto& [pid, server] : servers_) all.push_back({pid, server.process.uid});
  return all;
}

Result<Done> DebugDoor::ask(int pid, const Order& order, Nanoseconds) {
  const auto server = servers_.find(pid);
  if (server == servers_.end()) return Error("it no longer listens on its port");
  if (calls_.contains(pid)) return Error("another request for it is under way");
  if (order.extent.steps) return Error("PyTorch's debug server counts no steps; ask for seconds");
  if (!server->second.socket.empty()) {
    calls_[pid];
    return Done{};
  }
  const tcp::Listener& listener = server->second.listener;
  if (check_) {
    if (Result<Done> checked = check_(listener); !checked) return checked;
  }
  Result<Descriptor> connection = connecting(listener.port, listener.is_ip6());
  if (!connection) return connection.error().with("port " + std::to_string(listener.port));
  calls_[pid].connection = *std::move(connection);
  return Done{};
}

std::uint32_t DebugDoor::owner(int pid) const {
  const auto server = servers_.find(pid);
  return server == servers_.end() ? static_cast<std::uint32_t>(-1) : server->second.process.uid;
}

std::string DebugDoor::socket(int pid) const {
  const auto server = servers_.find(pid);
  return server == servers_.end() ? "" : server->second.socket;
}

bool DebugDoor::serves_conditions(int pid) const noexcept {
  const auto server = servers_.find(pid);
  return serves_conditions_ && server != servers_.end() && server->second.may_connect;
}

Descriptor DebugDoor::connection(int pid) {
  const auto call = calls_.find(pid);
  return call == calls_.end() ? Descriptor() : std::move(call->second.connection);
}

void DebugDoor::fetch(int pid, const Order& order) {
  const auto call = calls_.find(pid);
  if (call == calls_.end()) return;
  const auto connection = std::make_shared<Connection>(std::move(call->second.connection));
  const auto work = [=, path = file_of(order, pid, pid), duration = order.extent.duration, uid = owner(pid),
                     name = socket(pid)]() -> Result<Done> {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (Result<Done> made = make_room(folder, kMostInFolder - kMostBytes); !made) return made;
    if (!name.empty()) {
      Result<Descriptor> made = connect_to_socket(name, uid);
      if (!made) return made.error();
      connection->replace(*std::move(made));
    }
    const auto open = connection->get();
    if (!open) return open.error();
    const Result<std::uint64_t> size =
        fetch_to_file(**open, debug_request(duration), {path, uid, kMostBytes}, duration + Desk::kWrite);
    return size ? Result<Done>(Done{}) : size.error();
  };
  call->second.fetch =
      std::make_unique<Errand>(clock_, "trace-fetch", work, [connection] { connection->end(); });
}

void DebugDoor::ended(int pid, const std::string& error) {
  const auto call = calls_.find(pid);
  if (call == calls_.end() || call->second.progress.stage != Stage::taken) return;
  call->second.progress = error.empty() ? Progress{Stage::done, {}} : Progress{Stage::failed, error};
}

Progress DebugDoor::progress(int pid) const {
  const auto call = calls_.find(pid);
  if (call == calls_.end()) return {};
  return call->second.fetch ? call->second.fetch->progress() : call->second.progress;
}

std::string DebugDoor::file_of(const Order& order, int pid, int) const {
  return kineto::file_of(order.path, pid);
}

}  // namespace gpumeter::profiles
