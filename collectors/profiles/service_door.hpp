#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectors/profiles/door.hpp"
#include "collectors/profiles/profiler_service.hpp"
#include "collectors/profiles/search/ports.hpp"

namespace gpumeter::profiles {

/// The processes that opened the profiler service of TensorFlow or JAX, and their orders. Each order is a
/// call on a thread of its own ("profiler-call"), because it lasts as long as the trace. The service takes
/// times only: an order of steps is not accepted.
class ServiceDoor final : public Door {
 public:
  /// Called before each connection, on the call's thread. An Error ends the order.
  using Check = std::function<Result<Done>(const tcp::Listener& listener)>;
  static constexpr std::size_t kMostCalls = 64;  ///< threads at once; a machine has 16 GPUs at most

  /// `clock` must be the system's and outlive the threads.
  explicit ServiceDoor(const Clock& clock, Check check = {});
  /// Ends the calls under way; the jobs drop their traces. Does not wait.
  ~ServiceDoor() override;
  ServiceDoor(const ServiceDoor&) = delete;
  ServiceDoor& operator=(const ServiceDoor&) = delete;

  /// Replaces the list of the services on this machine. Calls under way continue.
  void found(const std::vector<PortHolder>& services);

  std::vector<Process> processes() const override;
  Result<Done> ask(int pid, const Order& order, Nanoseconds now) override;
  Progress progress(int pid) const override;
  /// Ends a call that is under way: the job drops the trace.
  void release(int pid) override;

  /// /logs/x.json becomes /logs/x/plugins/profile/x/PID.xplane.pb, which TensorBoard reads. The first folder
  /// is the order's own: in /tmp, another user's folder `plugins` would be in the way.
  std::string file_of(const Order& order, int pid, int inner_pid) const override;
  std::string_view begins() const noexcept override { return "the trace begins at once"; }

 private:
  class Call;

  const Clock& clock_;
  const Check check_;
  std::map<int, PortHolder> services_;          ///< by pid
  std::map<int, std::unique_ptr<Call>> calls_;  ///< by pid
};

}  // namespace gpumeter::profiles
