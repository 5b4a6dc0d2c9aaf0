#include "collectors/jobs/join/facts_json.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/json/scalars.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::jobs {
namespace {

std::string text_of(std::optional<double> value) { return value ? json_number(*value) : "null"; }
std::string quoted_or_null(std::string_view text) { return text.empty() ? "null" : json_quoted(text); }

std::string id_of(int pid, std::uint64_t start_ticks) {
  return "{\"pid\":" + std::to_string(pid) + ",\"start_ticks\":" + std::to_string(start_ticks);
}

std::string fields_of(const RunName& run) {
  return ",\"user\":" + quoted_or_null(run.user) + ",\"run\":" + quoted_or_null(run.run);
}

std::string facts_of(const workloads::ProcessUse& use, const RunList& runs, const OwnerName& owner_of) {
  const cgroup::Attribution workload = cgroup::attribution_of(cgroup::read_path(use.group));
  const bool is_known = !workload.workload.empty();
  const auto run = runs.on_devices.find(use.id);
  return id_of(use.id.pid, use.id.start_ticks) + ",\"uid\":" + (use.uid ? std::to_string(*use.uid) : "null") +
         ",\"owner\":" + (use.uid ? json_quoted(owner_of(*use.uid)) : "null") +
         ",\"group\":" + quoted_or_null(use.group) +
         ",\"kind\":" + (is_known ? json_quoted(cgroup::to_string(workload.kind)) : "null") +
         ",\"workload\":" + quoted_or_null(workload.workload) +
         fields_of(run == runs.on_devices.end() ? RunName() : run->second);
}

std::string as_json(const workloads::DeviceUse& device, const workloads::ProcessUse& use) {
  return "{\"uuid\":" + json_quoted(device.uuid) + ",\"gpu\":" + std::to_string(device.index) +
         ",\"present\":" + (use.present ? "true" : "false") +
         ",\"joules\":" + text_of(device.has_energy ? std::optional(use.energy_joules) : std::nullopt) +
         ",\"busy_seconds\":" + text_of(use.busy_seconds) + "}";
}

/// Appends an element that begins a line.
void append_line(std::string& body, const std::string& element) {
  body += (body.ends_with('[') ? "\n" : ",\n") + element;
}

}  // namespace

std::string processes_json(const DeviceUses& devices, const RunList& runs, const OwnerName& owner_of) {
  struct Process {
    std::string facts, devices;
  };
  std::map<workloads::ProcessId, Process> processes;
  for (const auto& device : devices) {
    for (const workloads::ProcessUse& use : device->processes) {
      const auto [place, is_new] = processes.try_emplace(use.id);
      Process& process = place->second;
      if (is_new) process.facts = facts_of(use, runs, owner_of);
      process.devices += (is_new ? "" : ",") + as_json(*device, use);
    }
  }
  std::string body = "{\"processes\":[";
  for (const auto& [id, process] : processes) {
    append_line(body, process.facts + ",\"devices\":[" + process.devices + "]}");
  }
  return body + "\n]}\n";
}

std::string runs_json(const RunList& runs) {
  std::string body = "{\"runs\":[";
  for (const RunName& run : runs.runs) {
    const bool has_ended = std::ranges::find(runs.ended, run) != runs.ended.end();
    const std::string state = has_ended ? "ended" : "running";
    append_line(body, "{" + fields_of(run).substr(1) + ",\"state\":\"" + state + "\"}");
  }
  body += "\n],\"processes\":[";
  for (const RunProcess& process : runs.processes) {
    append_line(body, id_of(process.id.pid, process.id.start_time) +
                          ",\"uid\":" + std::to_string(process.id.uid) + fields_of(process.run) + "}");
  }
  return body + "\n]}\n";
}

}  // namespace gpumeter::jobs
