#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectors/profiles/door.hpp"
#include "collectors/profiles/profiler_service.hpp"

namespace gpumeter::profiles {

/// The processes that opened the profiler service of TensorFlow or JAX, and their orders. Each order is a
/// call on a thread of its own ("profiler-call"), because it lasts as long as the trace. The service takes
/// times only: an order of steps is not accepted.
class ServiceDoor final : public Door {
 public:
  /// A process that listens on a port of the service.
  struct Service {
    Process process;
    std::uint16_t port = 0;
    bool is_ip6 = false;
  };
  static constexpr std::size_t kMostCalls = 64;  ///< threads at once; a machine has 16 GPUs at most

  /// `clock` must be the system's and outlive the threads.
  explicit ServiceDoor(const Clock& clock);
  /// Ends the calls under way; the jobs drop their traces. Does not wait.
  ~ServiceDoor() override;
  ServiceDoor(const ServiceDoor&) = delete;
  ServiceDoor& operator=(const ServiceDoor&) = delete;

  /// Replaces the list of the services on this machine. Calls under way continue.
  void found(const std::vector<Service>& services);

  std::vector<Process> processes() const override;
  bool ask(int pid, const Order& order, Nanoseconds now) override;
  Progress progress(int pid) const override;
  /// Ends a call that is under way: the job drops the trace.
  void release(int pid) override;

  /// The file that the process writes for the path of an order: /logs/x.json becomes
  /// /logs/plugins/profile/x/PID.xplane.pb, which TensorBoard reads.
  static std::string file_of(const Order& order, int pid);

 private:
  class Call;

  const Clock& clock_;
  std::map<int, Service> services_;             ///< by pid
  std::map<int, std::unique_ptr<Call>> calls_;  ///< by pid
};

}  // namespace gpumeter::profiles
