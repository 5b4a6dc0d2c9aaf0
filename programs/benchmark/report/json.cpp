#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/folder.hpp"
#include "programs/benchmark/report/history.hpp"

// Both outputs in one file, because few files may include nlohmann's header.
namespace gpumeter::benchmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBaselineRuns = 3;
constexpr std::size_t kMostRuns = 200;

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string name_of(const Measurement& each) {
  return std::string(kQuantityNames.of(each.quantity)) + "." + each.kind + "." + each.backend;
}

Json results_of(const Report& report) {
  Json results = Json::array();
  for (std::size_t i = 0; i < report.outcome.measurements.size(); ++i) {
    const Measurement& each = report.outcome.measurements[i];
    const auto ratio = i < report.baseline_ratios.size() ? report.baseline_ratios[i] : std::nullopt;
    results.push_back({{"quantity", kQuantityNames.of(each.quantity)},
                       {"kind", each.kind},
                       {"backend", each.backend},
                       {"value", each.value},
                       {"deviation", each.deviation},
                       {"runs", each.runs},
                       {"baseline_ratio", optional_number(ratio)}});
  }
  return results;
}

Json run_of(const Report& report) {
  Json facts = Json::object();
  for (const Fact& fact : report.outcome.facts) facts[fact.name] = fact.value;
  return {{"timestamp_seconds", report.timestamp},
          {"status", kStatusNames.of(report.status)},
          {"reason", report.reason},
          {"seconds", report.seconds},
          {"driver_version", report.gpu.driver_version},
          {"power_limit_watts", optional_number(report.gpu.power_limit)},
          {"temperature_celsius", optional_number(report.gpu.temperature)},
          {"facts", facts},
          {"failures", report.outcome.failures},
          {"notes", report.outcome.notes},
          {"results", results_of(report)}};
}

std::string key_of(const Report& report) {
  std::string key = "driver=" + report.gpu.driver_version;
  for (const Fact& fact : report.outcome.facts) key += " " + fact.name + "=" + fact.value;
  return key + " power_limit=" +
         (report.gpu.power_limit ? std::to_string(static_cast<int>(*report.gpu.power_limit)) : "");
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// The ratio to the baseline; adds the value to a baseline that is not complete yet. Throws on a wrong type.
std::optional<double> compare(Json& baseline, const Measurement& each, bool may_add) {
  Json& values = baseline[name_of(each)];
  if (values.is_null()) values = Json::array();
  if (values.size() < kBaselineRuns && may_add) values.push_back(each.value);
  if (values.size() < kBaselineRuns) return std::nullopt;
  const double usual = median(values.get<std::vector<double>>());
  return usual > 0 ? std::optional(each.value / usual) : std::nullopt;
}

/// A uuid comes from the daemon, and must not name a file elsewhere.
std::string file_of(const std::string& uuid) {
  std::string name = uuid;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '\0' || c == '.'; }, '_');
  return name + ".json";
}

/// The parsed file; an empty object if there is none. Moves a file away that is none of History's.
Json load(const Folder& folder, const std::string& name) {
  constexpr std::size_t kMost = 64U << 20U;
  if (folder.lacks(name)) return Json::object();
  const Result<std::string> text = folder.read(name, kMost);
  Json root = Json::parse(text ? *text : std::string(), nullptr, false);
  const bool is_ours = root.is_object() && root.contains("runs") && root["runs"].is_array() &&
                       root.contains("baselines") && root["baselines"].is_object();
  if (is_ours) return root;
  [[maybe_unused]] const Result<Done> ignored = folder.rename(name, name + ".bad");
  return Json::object();
}

}  // namespace

std::string json_text(std::span<const Report> reports) {
  Json list = Json::array();
  for (const Report& report : reports) {
    Json one{{"gpu", report.gpu.index},
             {"uuid", report.gpu.uuid},
             {"model", report.gpu.model},
             {"pci_address", report.gpu.pci_address}};
    one.update(run_of(report));
    list.push_back(std::move(one));
  }
  return Json{{"benchmarks", list}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Done> History::record(Report& report) const try {
  if (report.gpu.uuid.empty() || (report.status != Status::ok && report.status != Status::failed))
    return Done{};
  const Result<Folder> folder = Folder::open(folder_);
  if (!folder) return folder.error();
  const std::string name = file_of(report.gpu.uuid);
  Json root = load(*folder, name);
  root["uuid"] = report.gpu.uuid;
  root["model"] = report.gpu.model;
  Json& baseline = root["baselines"][key_of(report)];
  for (const Measurement& each : report.outcome.measurements)
    report.baseline_ratios.push_back(compare(baseline, each, report.status == Status::ok));
  Json& runs = root["runs"];
  runs.push_back(run_of(report));
  if (runs.size() > kMostRuns) runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(kMostRuns));
  constexpr mode_t kReadable = 0644;
  return folder->replace(name, root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", kReadable,
                         Folder::Outlives::power_cut);
} catch (const std::exception& problem) {
  return Error("the history of " + report.gpu.uuid + " cannot be kept: " + problem.what());
}

double History::last_run(const std::string& uuid) const try {
  const Result<Folder> folder = Folder::open(folder_);
  if (!folder) return 0;
  const Json root = load(*folder, file_of(uuid));
  return root.contains("runs") && !root["runs"].empty()
             ? root["runs"].back().at("timestamp_seconds").get<double>()
             : 0;
} catch (const std::exception&) {
  return 0;
}

}  // namespace gpumeter::benchmark
