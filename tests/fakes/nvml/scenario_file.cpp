#include "tests/fakes/nvml/scenario_file.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace gpumeter::fake_nvml {
namespace {

constexpr int kDeepest = 10;  // levels of include and like; more means a circle

constexpr std::array kForms = {"rate", "steps", "square", "integral_of", "error", "same_as"};

/// Merges `over` into `base`: maps key by key, anything else replaces. Null removes a key.
YAML::Node merged(const YAML::Node& base, const YAML::Node& over) {
  if (!base.IsMap() || !over.IsMap() || is_value_form(base) || is_value_form(over)) return YAML::Clone(over);
  YAML::Node result = YAML::Clone(base);
  for (const auto& entry : over) {
    const auto key = entry.first.as<std::string>();
    const YAML::Node before = base[key];
    result[key] = before.IsDefined() ? merged(before, entry.second) : YAML::Clone(entry.second);
  }
  return result;
}

/// `change: {3: {...}}`: merged into device 3.
void carry_out_changes(YAML::Node& file) {
  for (const auto& entry : file["change"]) {
    const auto index = entry.first.as<std::size_t>();
    if (index >= file["devices"].size()) throw std::runtime_error("change: there is no such device");
    file["devices"][index] = merged(file["devices"][index], entry.second);
  }
  file.remove("change");
}

YAML::Node included(const std::string& path, int depth) {
  if (depth > kDeepest) throw std::runtime_error(path + ": include goes in a circle");
  YAML::Node file = YAML::LoadFile(path);
  if (!file.IsMap()) throw std::runtime_error(path + ": not a map");
  if (file["include"]) {
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    YAML::Node base = included(folder + file["include"].as<std::string>(), depth + 1);
    file.remove("include");
    file = merged(base, file);
  }
  if (file["change"]) carry_out_changes(file);
  return file;
}

YAML::Node with_template(const YAML::Node& device, const YAML::Node& templates, int depth) {
  if (!device.IsMap() || !device["like"]) return device;
  const auto name = device["like"].as<std::string>();
  if (depth > kDeepest || !templates.IsMap() || !templates[name]) {
    throw std::runtime_error("like: there is no template " + name);
  }
  YAML::Node own = YAML::Clone(device);
  own.remove("like");
  return merged(with_template(templates[name], templates, depth + 1), own);
}

}  // namespace

bool is_value_form(const YAML::Node& node) {
  return node.IsMap() && std::any_of(kForms.begin(), kForms.end(), [&](const char* form) {
           return node[form].IsDefined() && node.size() <= 3;
         });
}

YAML::Node read_scenario_file(const std::string& path) {
  YAML::Node file = included(path, 0);
  YAML::Node devices(YAML::NodeType::Sequence);
  for (const auto& device : file["devices"]) devices.push_back(with_template(device, file["templates"], 0));
  file["devices"] = devices;
  file.remove("templates");
  return file;
}

}  // namespace gpumeter::fake_nvml
