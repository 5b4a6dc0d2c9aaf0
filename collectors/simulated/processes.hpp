#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/simulated/options.hpp"

namespace gpumeter::simulated {

class Model;
class Simulation;

/// The real processes that the option `processes` shows on one simulated device. Lane thread.
class Processes {
 public:
  Processes(std::shared_ptr<const Simulation> simulation, std::size_t device);

  /// Lists the live processes in the order of the option and its files, with their activity since the last
  /// call.
  void list(Nanoseconds now, std::vector<DeviceProcess>& out);

 private:
  void add(const ProcessOption& option, double seconds, std::vector<DeviceProcess>& out) const;

  const std::shared_ptr<const Simulation> simulation_;
  const Model& model_;
  std::vector<ProcessOption> options_;  // options for this device
  Nanoseconds listed_at_;
};

}  // namespace gpumeter::simulated
