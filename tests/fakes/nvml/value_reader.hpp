#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "tests/fakes/nvml/value_over_time.hpp"

namespace gpumeter::fake_nvml {

/// A list such as [sw_power_cap, gpu_idle], whose value is the sum of the bits.
bool is_word_list(const YAML::Node& node);

/// Reads the values of one device. A value may refer to another key of the device by `same_as`. Throws
/// std::exception.
class ValueReader {
 public:
  explicit ValueReader(const YAML::Node& root) : root_(root) {}

  ValueOverTime read(const YAML::Node& node, int depth = 0) const;

 private:
  std::vector<ValueOverTime::Step> steps(const YAML::Node& node, int depth) const;
  YAML::Node lookup(const std::string& path) const;

  YAML::Node root_;
};

}  // namespace gpumeter::fake_nvml
