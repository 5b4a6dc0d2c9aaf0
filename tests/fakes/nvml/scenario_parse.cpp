#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <stdexcept>

#include "tests/fakes/nvml/names.hpp"
#include "tests/fakes/nvml/scenario.hpp"
#include "tests/fakes/nvml/scenario_file.hpp"

namespace gpumeter::fake_nvml {
namespace {

Number number_of(const YAML::Node& node, const char* what) {
  const Value value = node.IsScalar() ? parse_scalar(node.Scalar()) : Value{};
  if (!value.is_number) throw std::runtime_error(std::string(what) + ": a number is needed");
  return value.number;
}

Number number_or(const YAML::Node& node, const char* key, Number otherwise) {
  return node[key] ? number_of(node[key], key) : otherwise;
}

/// Seconds; "forever" too.
double seconds_of(const YAML::Node& node, double otherwise) {
  if (!node) return otherwise;
  return node.Scalar() == "forever" ? kForever : node.as<double>();
}

/// [sw_power_cap, gpu_idle]: the sum of the bits.
bool is_word_list(const YAML::Node& node) {
  return node.IsSequence() && std::all_of(node.begin(), node.end(), [](const YAML::Node& item) {
           return item.IsScalar() && is_word(item.Scalar());
         });
}

/// Reads the values of one device, whose keys a value may refer to by `same_as`.
class ValueReader {
 public:
  explicit ValueReader(const YAML::Node& root) : root_(root) {}

  ValueOverTime read(const YAML::Node& node, int depth = 0) const {
    if (depth > 8) throw std::runtime_error("same_as goes in a circle");
    if (node.IsScalar()) return ValueOverTime(parse_scalar(node.Scalar()));
    if (is_word_list(node)) return ValueOverTime(bits(node));
    if (!is_value_form(node)) throw std::runtime_error("not a value");
    if (node["same_as"]) return read(lookup(node["same_as"].Scalar()), depth + 1);
    if (node["error"]) return ValueOverTime(Value{.error = error_of(node["error"].Scalar())});
    if (node["rate"]) {
      return ValueOverTime(ValueOverTime::Rate{number_or(node, "from", 0), number_of(node["rate"], "rate")});
    }
    if (node["square"]) return ValueOverTime(square(node["square"]));
    if (node["steps"]) return ValueOverTime(steps(node["steps"], depth));
    auto inner = std::make_shared<const ValueOverTime>(read(node["integral_of"], depth + 1));
    return ValueOverTime(
        ValueOverTime::Integral{std::move(inner), number_or(node, "scale", 1), number_or(node, "from", 0)});
  }

 private:
  static Value bits(const YAML::Node& words) {
    unsigned long long sum = 0;
    for (const auto& word : words) sum |= static_cast<unsigned long long>(parse_scalar(word.Scalar()).number);
    return Value{.number = static_cast<Number>(sum), .is_number = true};
  }

  static ValueOverTime::Square square(const YAML::Node& node) {
    return {number_of(node["period"], "period"), number_of(node["duty"], "duty"),
            number_of(node["high"], "high"), number_or(node, "low", 0)};
  }

  std::vector<ValueOverTime::Step> steps(const YAML::Node& node, int depth) const {
    if (!node.IsSequence() || node.size() == 0)
      throw std::runtime_error("steps: a list [[SECONDS, VALUE], ...]");
    std::vector<ValueOverTime::Step> result;
    for (const auto& step : node) {
      if (!step.IsSequence() || step.size() != 2) throw std::runtime_error("steps: each is [SECONDS, VALUE]");
      result.push_back({step[0].as<double>(), read(step[1], depth + 1)});
      if (result.size() > 1 && result[result.size() - 2].since > result.back().since) {
        throw std::runtime_error("steps: not in order of time");
      }
    }
    return result;
  }

  YAML::Node lookup(const std::string& path) const {
    YAML::Node node = YAML::Clone(root_);
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      const YAML::Node next = node[path.substr(begin, end - begin)];
      if (!next) throw std::runtime_error("same_as: there is no " + path);
      node.reset(next);
      begin = end + 1;
    }
    return node;
  }

  YAML::Node root_;
};

/// Lays a tree of keys flat: path -> value.
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

/// One map or a list of them.
std::vector<YAML::Node> each(const YAML::Node& node) {
  if (!node || node.IsNull()) return {};
  return node.IsSequence() ? std::vector<YAML::Node>(node.begin(), node.end()) : std::vector{node};
}

std::vector<Window> windows_of(const YAML::Node& node) {
  std::vector<Window> result;
  for (const auto& window : each(node)) {
    result.push_back({seconds_of(window["from"], 0), seconds_of(window["until"], kForever)});
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
  source.type = static_cast<unsigned long long>(number_of(node["type"], "type"));
  source.data = node["data"].as<unsigned long long>(0);
  source.gpu_instance = node["gi"].as<unsigned>(nvml::kNoInstance);
  source.compute_instance = node["ci"].as<unsigned>(nvml::kNoInstance);
  return source;
}

}  // namespace

Scenario load_scenario(const std::string& path) {
  const YAML::Node file = read_scenario_file(path);
  Scenario scenario;
  scenario.system = facts_of(file, {"devices", "events", "storms"});
  for (const auto& node : file["devices"]) {
    scenario.devices.push_back({facts_of(node, {"lost", "reset_required"}), windows_of(node["lost"]),
                                windows_of(node["reset_required"])});
  }
  for (const auto& event : each(file["events"])) scenario.events.push_back(source_of(event));
  for (const auto& storm : each(file["storms"])) scenario.events.push_back(source_of(storm));
  return scenario;
}

}  // namespace gpumeter::fake_nvml
