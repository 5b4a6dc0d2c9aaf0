#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/grpc/call.hpp"

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

struct ServiceTrace {
  std::string path;       ///< the file that the job wrote, as it sees it
  bool is_empty = false;  ///< the job reports that nothing was recorded; it has written no file then
};

/// Where the job writes the trace: FOLDER/plugins/profile/SESSION/HOST.xplane.pb, which TensorBoard reads.
std::string path_of(const ServiceOrder& order);

/// The message ProfileRequest of an order. Whole milliseconds.
std::string profile_request(const ServiceOrder& order);
/// Reads the message ProfileResponse: true if the trace is empty.
Result<bool> parse_profile_response(std::string_view message);

/// Why there is no trace, for ml_profiles_total.
struct ServiceFailure {
  grpc::Failure failure = grpc::Failure::none;
  std::string message = {};
};

/// Asks for a trace and waits for its end: `duration`, and up to kWrite for the file. A thread of its own.
class ProfilerService {
 public:
  /// For the job's collection and writing of the trace. A trace of a second of a large model has 100 MB.
  static constexpr Nanoseconds kWrite = std::chrono::minutes(2);
  /// Longest answer. Jobs that write the trace themselves answer with some bytes.
  static constexpr std::size_t kMostAnswer = 1U << 20U;

  /// `clock` must be the system's and outlive this object. `waker`: an eventfd that ends a call, or -1; the
  /// job then drops the trace.
  explicit ProfilerService(const Clock& clock, int waker = -1) : clock_(clock), waker_(waker) {}

  /// An Error names the port. `why`: also the reason, if the caller asks for it.
  Result<ServiceTrace> profile(const ServiceOrder& order, ServiceFailure* why = nullptr) const;

 private:
  const Clock& clock_;
  const int waker_;
};

}  // namespace gpumeter::profiles
