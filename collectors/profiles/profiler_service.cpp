#include "collectors/profiles/profiler_service.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "collectors/grpc/call.hpp"

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

/// A socket whose connect() may be under way.
Result<Descriptor> connecting(const ServiceOrder& order) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(order.port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(order.port);
  v6.sin6_addr = in6addr_loopback;
  const auto* const address =
      order.is_ip6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  const socklen_t length = order.is_ip6 ? sizeof v6 : sizeof v4;
  Descriptor out(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out && (::connect(out.number(), address, length) == 0 || errno == EINPROGRESS)) return out;
  return Error(std::generic_category().message(errno));
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
  Result<Descriptor> socket = connecting(order);
  if (!socket) return failed(order, why, grpc::Failure::unavailable, socket.error().message());
  const Nanoseconds deadline = clock_.monotonic() + order.duration + kWrite;
  const grpc::Answer answer = grpc::ask(*std::move(socket), {kMethod, profile_request(order), kMostAnswer, 1},
                                        clock_, deadline, waker_);
  if (!answer.outcome) return failed(order, why, answer.outcome.failure, answer.outcome.message);
  const Result<bool> is_empty = parse_profile_response(answer.message);
  if (!is_empty) return failed(order, why, grpc::Failure::malformed, is_empty.error().message());
  return ServiceTrace{path_of(order), *is_empty};
}

}  // namespace gpumeter::profiles
