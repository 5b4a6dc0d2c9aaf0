#include "programs/service/facts.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"

namespace gpumeter::service {
namespace {

using Json = nlohmann::json;

constexpr client::Limits kLimits{std::chrono::seconds(1), std::chrono::seconds(3),
                                 std::size_t{64} << 20U};  // 100 000 processes, each on eight devices

std::string text_at(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::string() : value.get<std::string>();
}

template <class Number>
std::optional<Number> number_at(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<Number>());
}

workloads::ProcessId id_of(const Json& process) {
  return {process.at("pid").get<int>(), process.at("start_ticks").get<std::uint64_t>()};
}

jobs::RunName run_of(const Json& object) { return {text_at(object, "user"), text_at(object, "run")}; }

using Uses = std::map<std::string, workloads::DeviceUse>;  // by uuid

void take_process(const Json& process, Uses& uses) {
  workloads::ProcessUse use;
  use.id = id_of(process);
  use.uid = number_at<std::uint32_t>(process, "uid");
  use.group = text_at(process, "group");
  for (const Json& each : process.at("devices")) {
    const std::string uuid = text_at(each, "uuid");
    const std::optional<double> joules = number_at<double>(each, "joules");
    workloads::DeviceUse& device = uses[uuid];
    device.uuid = uuid;
    device.index = each.at("gpu").get<unsigned>();
    device.has_energy = joules.has_value();
    use.present = each.at("present").get<bool>();
    use.energy_joules = joules.value_or(0);
    use.busy_seconds = number_at<double>(each, "busy_seconds");
    device.processes.push_back(use);
  }
}

/// The library throws if a value is missing or has another type.
template <class Take>
Result<Done> read(std::string_view text, Take take) {
  try {
    take(Json::parse(text));
    return Done{};
  } catch (const Json::exception& problem) {
    return Error(std::string("the answer is not understood: ") + problem.what());
  }
}

}  // namespace

Result<Done> take_processes(std::string_view json, Machine& machine) {
  Uses uses;
  jobs::RunList runs = *machine.runs.get();
  runs.on_devices.clear();
  const Result<Done> done = read(json, [&](const Json& answer) {
    for (const Json& process : answer.at("processes")) {
      take_process(process, uses);
      if (jobs::RunName run = run_of(process); !run.run.empty()) {
        runs.on_devices.emplace(id_of(process), std::move(run));
      }
    }
  });
  if (!done) return done;
  std::vector<std::shared_ptr<const workloads::DeviceUse>> list;
  for (auto& [uuid, use] : uses) {
    list.push_back(std::make_shared<const workloads::DeviceUse>(std::move(use)));
  }
  machine.uses.publish(std::move(list));
  machine.runs.publish(std::move(runs));
  return Done{};
}

Result<Done> take_runs(std::string_view json, Machine& machine) {
  jobs::RunList runs;
  runs.on_devices = machine.runs.get()->on_devices;
  const Result<Done> done = read(json, [&](const Json& answer) {
    for (const Json& each : answer.at("runs")) {
      runs.runs.push_back(run_of(each));
      if (each.at("state") == "ended") runs.ended.push_back(runs.runs.back());
    }
    for (const Json& each : answer.at("processes")) {
      const workloads::ProcessId id = id_of(each);
      runs.processes.push_back({{each.at("uid").get<std::uint32_t>(), id.pid, id.start_ticks}, run_of(each)});
    }
  });
  if (done) machine.runs.publish(std::move(runs));
  return done;
}

Facts::Facts(const std::string& socket, Machine& machine, Log& log)
    : socket_(socket),
      client_({.url = "http://localhost", .host = {}, .socket = socket}, {}, kLimits, "gpumeter"),
      machine_(machine),
      log_(log) {}

void Facts::ask() {
  Result<Done> done = ask("/api/v1/processes", take_processes);
  if (done) done = ask("/api/v1/runs", take_runs);
  const std::string error = done ? "" : done.error().message();
  const std::string before = std::exchange(error_, error);
  if (error == before) return;
  if (error.empty()) return log_.info("the daemon answers again");
  log_.warn("the daemon does not answer; its last answer stays in force", {{"error", error}});
}

Result<Done> Facts::ask(const std::string& path, Result<Done> (*take)(std::string_view, Machine&)) {
  constexpr long kOk = 200;
  const auto answer = client_.get(path);
  if (client_.was_refused()) return Error("no daemon listens on " + socket_);
  if (!answer) return answer.error();
  if (answer->status != kOk) return Error(path + ": HTTP status " + std::to_string(answer->status));
  return take(answer->body, machine_);
}

}  // namespace gpumeter::service
