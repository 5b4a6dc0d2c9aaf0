#include <yaml-cpp/yaml.h>

#include <stdexcept>

#include "tests/fakes/nvml/known_keys.hpp"
#include "tests/fakes/nvml/names.hpp"
#include "tests/fakes/nvml/scenario.hpp"
#include "tests/fakes/nvml/scenario_file.hpp"
#include "tests/fakes/nvml/value_reader.hpp"

namespace gpumeter::fake_nvml {
namespace {

/// Parses seconds, or "forever".
double seconds_of(const YAML::Node& node, double otherwise) {
  if (!node) return otherwise;
  return node.Scalar() == "forever" ? kForever : node.as<double>();
}

/// Flattens a tree of keys: path -> value.
class Flattener {
 public:
  Flattener(const YAML::Node& root, Facts& facts) : reader_(root), facts_(facts) {}

  void add(const std::string& path, const YAML::Node& node) {
    if (node.IsNull()) return;
    const bool empty_list = node.IsSequence() && node.size() == 0;
    if (node.IsSequence()) facts_.counts[path] = node.size();
    if (node.IsScalar() || is_value_form(node) || is_word_list(node)) add_value(path, node);
    if (empty_list) return;
    if (node.IsMap() && !is_value_form(node)) add_map(path, node);
    if (node.IsSequence() && !is_word_list(node)) {
      for (std::size_t i = 0; i < node.size(); ++i) add(path + "." + std::to_string(i), node[i]);
    }
  }

  void add_map(const std::string& path, const YAML::Node& node) {
    for (const auto& entry : node)
      add(path.empty() ? key(path, entry.first) : path + "." + key(path, entry.first), entry.second);
  }

 private:
  static std::string key(const std::string& path, const YAML::Node& name) {
    if (path == "fields") return std::to_string(field_id(name.Scalar()));
    if (path.ends_with("gpm.metrics")) return std::to_string(gpm_id(name.Scalar()));
    return name.Scalar();
  }

  void add_value(const std::string& path, const YAML::Node& node) {
    try {
      facts_.values.emplace(path, reader_.read(node));
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
  }

  ValueReader reader_;
  Facts& facts_;
};

/// Accepts one map or a list of maps.
std::vector<YAML::Node> each(const YAML::Node& node) {
  if (!node || node.IsNull()) return {};
  return node.IsSequence() ? std::vector<YAML::Node>(node.begin(), node.end()) : std::vector{node};
}

/// {from, until}, repeated if `every` and `times` are given.
std::vector<Window> windows_of(const YAML::Node& node) {
  std::vector<Window> result;
  for (const auto& window : each(node)) {
    const double from = seconds_of(window["from"], 0), until = seconds_of(window["until"], kForever);
    const double every = window["every"].as<double>(0);
    for (int i = 0; i < window["times"].as<int>(1); ++i)
      result.push_back({from + i * every, until + i * every});
  }
  return result;
}

std::vector<Hang> hangs_of(const YAML::Node& node) {
  std::vector<Hang> result;
  for (const auto& hang : each(node)) {
    const double after = seconds_of(hang["after"], 0);
    result.push_back(
        {hang["function"].as<std::string>("all"), {after, after + seconds_of(hang["for"], kForever)}});
  }
  return result;
}

Facts facts_of(const YAML::Node& node, std::initializer_list<const char*> not_values) {
  YAML::Node rest = node.IsMap() ? YAML::Clone(node) : YAML::Node(YAML::NodeType::Map);
  Facts facts;
  facts.hangs = hangs_of(rest["hang"]);
  rest.remove("hang");
  for (const char* key : not_values) rest.remove(key);
  Flattener(rest, facts).add_map("", rest);
  return facts;
}

EventSource source_of(const YAML::Node& node) {
  EventSource source;
  source.when = node["at"] ? Window{node["at"].as<double>(), kForever}
                           : Window{seconds_of(node["from"], 0), seconds_of(node["until"], kForever)};
  source.rate = node["rate"].as<double>(0);
  source.device = node["device"].as<std::size_t>(0);
  const bool is_operational = node["type"].Scalar() == "operational";
  source.type = is_operational ? EventSource::kOperational
                               : static_cast<unsigned long long>(parse_scalar(node["type"].Scalar()).number);
  source.module = node["module"].as<std::string>("");
  source.code = node["code"].as<unsigned>(0);
  source.severity = node["severity"].as<unsigned>(0);
  source.attributes = node["attributes"].as<unsigned>(0);
  source.group_attributes = node["group_attributes"].as<unsigned>(0);
  source.log_level = node["log_level"].as<unsigned>(nvml::kNoticeLevel);
  for (const auto& context : each(node["contexts"])) source.contexts.push_back(context.as<unsigned>());
  source.data = node["data"].as<unsigned long long>(0);
  source.gpu_instance = node["gi"].as<unsigned>(nvml::kNoInstance);
  source.compute_instance = node["ci"].as<unsigned>(nvml::kNoInstance);
  return source;
}

}  // namespace

Scenario load_scenario(const std::string& path) {
  const YAML::Node file = read_scenario_file(path);
  Scenario scenario;
  scenario.system = facts_of(file, {"devices", "events", "storms", "missing"});
  check_system_keys(scenario.system);
  for (const auto& node : file["devices"]) {
    scenario.devices.push_back({facts_of(node, {"lost", "reset_required"}), windows_of(node["lost"]),
                                windows_of(node["reset_required"])});
  }
  for (const auto& device : scenario.devices) check_device_keys(device.facts);
  for (const auto& event : each(file["events"])) scenario.events.push_back(source_of(event));
  for (const auto& storm : each(file["storms"])) scenario.events.push_back(source_of(storm));
  return scenario;
}

}  // namespace gpumeter::fake_nvml
