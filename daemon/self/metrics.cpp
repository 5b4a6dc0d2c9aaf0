#include "daemon/self/metrics.hpp"

#include <cstddef>

#include "collectors/api/self_catalog.hpp"

namespace gpumeter {
namespace {

LabelBlock labels(std::vector<Label> pairs) { return LabelBlock(pairs); }

double flag(bool value) noexcept { return value ? 1 : 0; }

void add_build(SeriesSet& set, const BuildFacts& build) {
  set.add(self_catalog::build_info,
          labels({{"version", std::string(build.version)},
                  {"revision", std::string(build.revision)},
                  {"branch", std::string(build.branch)},
                  {"compiler", std::string(build.compiler)}}),
          1);
}

/// Every way a read can fail is there from the start, with 0: an alert on its rate needs the first one.
void add_read_errors(SeriesSet& set, const std::string& collector, unsigned gpu, const ReadErrors& errors) {
  for (const auto& [status, name] : kReadStatusNames) {
    if (status == ReadStatus::ok) continue;
    set.add(self_catalog::read_errors,
            labels({{"collector", collector}, {"gpu", std::to_string(gpu)}, {"status", std::string(name)}}),
            static_cast<double>(errors[static_cast<std::size_t>(status)]));
  }
}

void add_collector(SeriesSet& set, const CollectorHealth& collector) {
  const LabelBlock name = labels({{"collector", collector.name}});
  set.add(self_catalog::collector_up, name, flag(collector.up));
  set.add(self_catalog::collector_released, name, flag(collector.released));
  set.add(self_catalog::collector_devices, name, collector.devices);
  if (const auto last = collector.last_success_timestamp_seconds) {
    set.add(self_catalog::collector_last_success, name, *last);
  }
  for (const auto& [gpu, errors] : collector.read_errors) add_read_errors(set, collector.name, gpu, errors);
}

void add_process(SeriesSet& set, const ProcessStats& process) {
  set.add(self_catalog::process_cpu_seconds, {}, process.cpu_seconds);
  set.add(self_catalog::process_open_fds, {}, process.open_fds);
  set.add(self_catalog::process_max_fds, {}, process.max_fds);
  set.add(self_catalog::process_virtual_memory, {}, process.virtual_bytes);
  set.add(self_catalog::process_resident_memory, {}, process.resident_bytes);
  set.add(self_catalog::process_start_time, {}, process.start_time_seconds);
  set.add(self_catalog::process_threads, {}, process.threads);
}

}  // namespace

SeriesSet self_series(const SelfState& state) {
  SeriesSet set;
  add_build(set, state.build);
  set.add(self_catalog::simulated, {}, flag(state.simulated));
  set.add(self_catalog::config_reload_successful, {}, flag(state.config_reload_successful));
  set.add(self_catalog::config_reload_timestamp, {}, state.config_reload_timestamp_seconds);
  for (const CollectorHealth& collector : state.collectors) add_collector(set, collector);
  for (const PassDuration& pass : state.passes) {
    set.add(self_catalog::sample_duration,
            labels({{"collector", pass.collector}, {"gpu", std::to_string(pass.gpu)}, {"tier", pass.tier}}),
            pass.seconds);
  }
  for (const auto& [vendor, count] : state.pci_devices) {
    set.add(self_catalog::pci_devices, labels({{"vendor", vendor}}), count);
  }
  for (const auto& [code, count] : state.http_requests) {
    set.add(self_catalog::http_requests, labels({{"code", std::to_string(code)}}),
            static_cast<double>(count));
  }
  set.add(self_catalog::log_dropped, {}, static_cast<double>(state.log_dropped));
  if (state.process) add_process(set, *state.process);
  return set;
}

}  // namespace gpumeter
