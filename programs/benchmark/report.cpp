#include "programs/benchmark/report.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/folder.hpp"

namespace gpumeter::benchmark {
namespace {

/// "78.7 GFLOPS": three digits and a prefix of the SI.
std::string with_prefix(double value, const char* unit) {
  static constexpr std::array<const char*, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < kPrefixes.size()) value /= 1000, ++prefix;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s%s",
                value < 10    ? 2
                : value < 100 ? 1
                              : 0,
                value, kPrefixes[prefix], unit);
  return text.data();
}

const char* unit_of(const Measurement& each) {
  if (each.quantity != Quantity::flops) return "B/s";
  return each.kind.starts_with("int") ? "OPS" : "FLOPS";
}

const char* name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::flops:
      return "matrix product";
    case Quantity::memory_bandwidth:
      return "device memory";
    case Quantity::transfer:
      return "transfer";
  }
  return "";
}

std::string row(const Measurement& each, const std::optional<double>& baseline) {
  std::array<char, 200> text{};
  const std::string ratio = baseline ? std::to_string(std::lround(*baseline * 100)) + " %" : "";
  std::snprintf(text.data(), text.size(), "  %-14s %-17s %-8s %14s %6.1f %% %5d %9s\n",
                name_of(each.quantity), each.kind.c_str(), each.backend.c_str(),
                with_prefix(each.value, unit_of(each)).c_str(),
                each.value > 0 ? each.deviation / each.value * 100 : 0, each.runs, ratio.c_str());
  return text.data();
}

std::string title(const Report& report) {
  std::string text = report.gpu.index.empty() ? "" : "GPU " + report.gpu.index + " ";
  text += report.gpu.uuid.empty() ? "" : "(" + report.gpu.uuid + ") ";
  return text + report.gpu.model + ": " + std::string(kStatusNames.of(report.status)) +
         (report.reason.empty() ? "" : ", " + report.reason) + "\n";
}

std::string device_text(const Report& report) {
  std::string text = title(report);
  if (!report.outcome.measurements.empty())
    text += "  test           kind              backend            value deviation  runs  baseline\n";
  for (std::size_t i = 0; i < report.outcome.measurements.size(); ++i)
    text += row(report.outcome.measurements[i],
                i < report.baseline_ratios.size() ? report.baseline_ratios[i] : std::nullopt);
  for (const std::string& failure : report.outcome.failures) text += "  failed: " + failure + "\n";
  for (const std::string& note : report.outcome.notes) text += "  note: " + note + "\n";
  return text;
}

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

/// No uuid has them; with one of them, a line would say something else.
constexpr std::string_view kSeparators = ",|#\n";

std::string number(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string tags_of(const Measurement& each) {
  switch (each.quantity) {
    case Quantity::flops:
      return ",dtype:" + each.kind + ",backend:" + each.backend;
    case Quantity::memory_bandwidth:
      return ",operation:" + each.kind;
    case Quantity::transfer:
      return ",direction:" + each.kind;
  }
  return {};
}

}  // namespace

std::string table_text(std::span<const Report> reports) {
  std::string text;
  for (const Report& report : reports) text += (text.empty() ? "" : "\n") + device_text(report);
  return text;
}

// Both outputs in one file, because few files may include nlohmann's header.

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

std::string datagram(const Report& report) {
  if (report.gpu.uuid.empty() || report.gpu.uuid.find_first_of(kSeparators) != std::string::npos) return {};
  if (report.status != Status::ok && report.status != Status::failed) return {};
  const std::string device = "|g|#uuid:" + report.gpu.uuid;
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value, const std::string& tags = {}) {
    text += "gpu.benchmark." + std::string(name) + ":" + value + device + tags + "\n";
  };
  if (report.status == Status::ok) {
    for (const Measurement& each : report.outcome.measurements)
      add(kQuantityNames.of(each.quantity), number("%.6g", each.value), tags_of(each));
  }
  add("failed", report.status == Status::failed ? "1" : "0");
  add("timestamp", number("%.3f", report.timestamp));
  return text;
}

Result<Done> send_to(const std::string& socket_path, const std::string& datagram) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof name.sun_path) return Error(socket_path + ": the path is too long");
  socket_path.copy(name.sun_path, sizeof name.sun_path - 1);
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket && sendto(socket.number(), datagram.data(), datagram.size(), MSG_NOSIGNAL,
                       reinterpret_cast<const sockaddr*>(&name), sizeof name) >= 0)
    return Done{};
  return Error(socket_path + ": " + std::generic_category().message(errno));
}

}  // namespace gpumeter::benchmark
