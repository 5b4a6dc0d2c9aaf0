#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

namespace gpumeter::fake_nvml {

/// The file with everything it includes, `change` and `like` carried out: README.md, "Files". Throws
/// std::exception.
YAML::Node read_scenario_file(const std::string& path);

/// True for a map that is one value over time, and not a group of keys.
bool is_value_form(const YAML::Node& node);

}  // namespace gpumeter::fake_nvml
