#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

namespace gpumeter::fake_nvml {

/// Reads the file with all its includes, and applies `change` and `like`: README.md, "Files". Throws
/// std::exception.
YAML::Node read_scenario_file(const std::string& path);

/// Returns true for a map that describes one value over time, not a group of keys.
bool is_value_form(const YAML::Node& node);

}  // namespace gpumeter::fake_nvml
