#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/simulated/options.hpp"

namespace gpumeter::simulated {

class Model;
class Simulation;

/// Who is on one simulated device: real processes, by the option `processes`. Lane thread.
class Processes {
 public:
  Processes(std::shared_ptr<const Simulation> simulation, std::size_t device);

  /// Those that live, in the order of the option and its files; what they did since the last call.
  void list(Nanoseconds now, std::vector<DeviceProcess>& out);

 private:
  void add(const ProcessOption& option, double seconds, std::vector<DeviceProcess>& out) const;

  const std::shared_ptr<const Simulation> simulation_;
  const Model& model_;
  std::vector<ProcessOption> options_;  // of this device
  Nanoseconds listed_at_;
};

}  // namespace gpumeter::simulated
