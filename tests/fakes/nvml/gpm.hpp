#pragma once

#include <memory>
#include <string>

#include "tests/fakes/nvml/scenario.hpp"

namespace gpumeter::fake_nvml {

/// The data of one nvmlGpmSampleGet. Guarded by the library's mutex.
struct GpmSampleState {
  std::shared_ptr<const Scenario> scenario;
  const Device* device = nullptr;  ///< null: not sampled yet
  std::string prefix;              ///< "gpm." of the device or of an instance
  double taken = 0;
};

}  // namespace gpumeter::fake_nvml
