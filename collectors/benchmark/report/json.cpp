#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "collectors/benchmark/report/history.hpp"

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

/// The parsed file; an empty object if there is none. Moves a file away that is none of History's.
Json load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Json::object();
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Json root = Json::parse(text, nullptr, false);
  const bool is_ours = root.is_object() && root.contains("runs") && root["runs"].is_array() &&
                       root.contains("baselines") && root["baselines"].is_object();
  if (is_ours) return root;
  std::error_code ignored;
  std::filesystem::rename(path, path + ".bad", ignored);
  return Json::object();
}

Result<Done> save(const std::string& path, const std::string& text) {
  const std::string next = path + ".new";
  std::FILE* const file = std::fopen(next.c_str(), "we");
  if (file == nullptr) return Error(next + ": cannot be created");
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                          std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  if (std::fclose(file) != 0 || !is_written) return Error(next + ": cannot be written");
  if (std::rename(next.c_str(), path.c_str()) != 0) return Error(path + ": cannot be replaced");
  return Done{};
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

/// A uuid comes from the daemon, and must not name a file elsewhere.
std::string History::path_of(const std::string& uuid) const {
  std::string name = uuid;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '\0' || c == '.'; }, '_');
  return folder_ + "/" + name + ".json";
}

Result<Done> History::record(Report& report) const try {
  if (report.gpu.uuid.empty() || (report.status != Status::ok && report.status != Status::failed))
    return Done{};
  const std::string path = path_of(report.gpu.uuid);
  Json root = load(path);
  root["uuid"] = report.gpu.uuid;
  root["model"] = report.gpu.model;
  Json& baseline = root["baselines"][key_of(report)];
  for (const Measurement& each : report.outcome.measurements)
    report.baseline_ratios.push_back(compare(baseline, each, report.status == Status::ok));
  Json& runs = root["runs"];
  runs.push_back(run_of(report));
  if (runs.size() > kMostRuns) runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(kMostRuns));
  return save(path, root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
} catch (const std::exception& problem) {
  return Error("the history of " + report.gpu.uuid + " cannot be kept: " + problem.what());
}

double History::last_run(const std::string& uuid) const try {
  const Json root = load(path_of(uuid));
  return root.contains("runs") && !root["runs"].empty()
             ? root["runs"].back().at("timestamp_seconds").get<double>()
             : 0;
} catch (const std::exception&) {
  return 0;
}

}  // namespace gpumeter::benchmark
