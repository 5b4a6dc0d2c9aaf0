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

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/worker.hpp"
#include "collectors/grpc/call.hpp"
#include "programs/profiler/kineto.hpp"

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

Error failed(const ServiceOrder& order, ServiceFailure* why, grpc::Failure failure,
             const std::string& message) {
  if (why != nullptr) *why = {failure, message};
  return Error("port " + std::to_string(order.port) + ": " + message);
}

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

Result<ServiceTrace> ProfilerService::profile(const ServiceOrder& order, ServiceFailure* why) const {
  Result<Descriptor> socket = connecting(order.port, order.is_ip6);
  if (!socket) return failed(order, why, grpc::Failure::unavailable, socket.error().message());
  const Nanoseconds deadline = clock_.monotonic() + order.duration + kWrite;
  const grpc::Answer answer = grpc::ask(*std::move(socket), {kMethod, profile_request(order), kMostAnswer, 1},
                                        clock_, deadline, waker_);
  if (!answer.outcome) return failed(order, why, answer.outcome.failure, answer.outcome.message);
  const Result<bool> is_empty = parse_profile_response(answer.message);
  if (!is_empty) return failed(order, why, grpc::Failure::malformed, is_empty.error().message());
  return ServiceTrace{path_of(order), *is_empty};
}

/// An order and its thread.
class ServiceDoor::Call {
 public:
  Call(const Clock& clock, ServiceOrder order, std::function<Result<Done>()> check)
      : shared_(std::make_shared<Shared>(clock, std::move(order), std::move(check))), worker_(clock) {}
  ~Call() { eventfd_write(shared_->stopper.number(), 1); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void start() {
    const Result<Done> started =
        worker_.start("profiler-call", [shared = shared_]() -> std::optional<Nanoseconds> {
          shared->run();
          return std::nullopt;
        });
    if (!started) shared_->end({Stage::failed, started.error().message()});
  }
  Progress progress() const {
    MutexLock lock(shared_->mutex);
    return shared_->progress;
  }

 private:
  /// Also owned by the thread, which may outlive the call.
  struct Shared {
    Shared(const Clock& its_clock, ServiceOrder its_order, std::function<Result<Done>()> its_check)
        : clock(its_clock), order(std::move(its_order)), check(std::move(its_check)) {}

    void run() GPUMETER_EXCLUDES(mutex) {
      if (const Result<Done> checked = check(); !checked) {
        return end({Stage::failed, checked.error().message()});
      }
      const Result<ServiceTrace> trace = ProfilerService(clock, stopper.number()).profile(order);
      if (!trace) return end({Stage::failed, trace.error().message()});
      end(trace->is_empty ? Progress{Stage::failed, "the trace is empty"} : Progress{Stage::done, {}});
    }
    void end(Progress how) GPUMETER_EXCLUDES(mutex) {
      MutexLock lock(mutex);
      progress = std::move(how);
    }

    const Clock& clock;
    const ServiceOrder order;
    const std::function<Result<Done>()> check;
    const Descriptor stopper{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    mutable Mutex mutex;
    Progress progress GPUMETER_GUARDED_BY(mutex) = {Stage::taken, {}};
  };

  const std::shared_ptr<Shared> shared_;
  Worker worker_;
};

ServiceDoor::ServiceDoor(const Clock& clock, Check check) : clock_(clock), check_(std::move(check)) {}
ServiceDoor::~ServiceDoor() = default;

void ServiceDoor::found(const std::vector<PortHolder>& services) {
  services_.clear();
  for (const PortHolder& service : services) services_.try_emplace(service.process.pid, service);
}

std::vector<Process> ServiceDoor::processes() const {
  std::vector<Process> all;
  for (const auto& [pid, service] : services_) all.push_back(service.process);
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
  const tcp::Listener& listener = service->second.listener;
  ServiceOrder asked = order_of(order, pid);
  asked.port = listener.port;
  asked.is_ip6 = listener.is_ip6();
  asked.is_host_traced = service->second.has_safe_host_trace;
  const auto check = [check = check_, listener]() -> Result<Done> {
    return check ? check(listener) : Done{};
  };
  calls_[pid] = std::make_unique<Call>(clock_, std::move(asked), check);
  calls_[pid]->start();
  return Done{};
}

Progress ServiceDoor::progress(int pid) const {
  const auto call = calls_.find(pid);
  return call == calls_.end() ? Progress() : call->second->progress();
}

void ServiceDoor::release(int pid) { calls_.erase(pid); }

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
  for (const auto& [pid, server] : servers_) all.push_back(server.process);
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

void DebugDoor::ended(int pid, const std::string& error) {
  const auto call = calls_.find(pid);
  if (call == calls_.end() || call->second.progress.stage != Stage::taken) return;
  call->second.progress = error.empty() ? Progress{Stage::done, {}} : Progress{Stage::failed, error};
}

Progress DebugDoor::progress(int pid) const {
  const auto call = calls_.find(pid);
  return call == calls_.end() ? Progress() : call->second.progress;
}

std::string DebugDoor::file_of(const Order& order, int pid, int) const {
  return kineto::file_of(order.path, pid);
}

}  // namespace gpumeter::profiles
