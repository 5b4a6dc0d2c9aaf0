#include "daemon/self/metrics.hpp"

#include <cstddef>

#include "collectors/api/self_catalog.hpp"

namespace gpumeter {
namespace {

double flag(bool value) noexcept { return value ? 1 : 0; }

void add_build(SeriesList& to, const BuildFacts& build) {
  to.add(self_catalog::build_info,
         Labels({{"version", std::string(build.version)},
                 {"revision", std::string(build.revision)},
                 {"branch", std::string(build.branch)},
                 {"compiler", std::string(build.compiler)}}),
         1);
}

/// Exports every kind of read error from the start, with 0: an alert on the rate needs a sample before the
/// first error.
void add_read_errors(SeriesList& to, const std::string& collector, unsigned gpu, const ReadErrors& errors) {
  for (const auto& [status, name] : kReadStatusNames) {
    if (status == ReadStatus::ok) continue;
    to.add(self_catalog::read_errors,
           Labels({{"collector", collector}, {"gpu", std::to_string(gpu)}, {"status", std::string(name)}}),
           static_cast<double>(errors[static_cast<std::size_t>(status)]));
  }
}

void add_collector(SeriesList& to, const CollectorHealth& collector) {
  const Labels name{{"collector", collector.name}};
  to.add(self_catalog::collector_up, name, flag(collector.up));
  to.add(self_catalog::collector_released, name, flag(collector.released));
  to.add(self_catalog::collector_devices, name, collector.devices);
  if (const auto last = collector.last_success_timestamp_seconds) {
    to.add(self_catalog::collector_last_success, name, *last);
  }
  for (const DeniedValues& denied : collector.denied) {
    to.add(self_catalog::values_denied,
           Labels({{"collector", collector.name}, {"what", denied.what}, {"drop_in", denied.drop_in}}), 1);
  }
  for (const auto& [gpu, errors] : collector.read_errors) add_read_errors(to, collector.name, gpu, errors);
}

void add_process(SeriesList& to, const ProcessStats& process) {
  to.add(self_catalog::process_cpu_seconds, {}, process.cpu_seconds);
  to.add(self_catalog::process_open_fds, {}, process.open_fds);
  to.add(self_catalog::process_max_fds, {}, process.max_fds);
  to.add(self_catalog::process_virtual_memory, {}, process.virtual_bytes);
  to.add(self_catalog::process_resident_memory, {}, process.resident_bytes);
  to.add(self_catalog::process_start_time, {}, process.start_time_seconds);
  to.add(self_catalog::process_threads, {}, process.threads);
}

}  // namespace

void add_self_series(const SelfState& state, SeriesList& to) {
  add_build(to, state.build);
  to.add(self_catalog::simulated, {}, flag(state.simulated));
  to.add(self_catalog::config_reload_successful, {}, flag(state.config_reload_successful));
  to.add(self_catalog::config_reload_timestamp, {}, state.config_reload_timestamp_seconds);
  if (const auto& web = state.web_config) {
    to.add(self_catalog::web_config_reload_successful, {}, flag(web->is_successful));
    to.add(self_catalog::web_config_reload_timestamp, {}, web->timestamp_seconds);
  }
  if (const auto expiry = state.certificate_expiry_timestamp_seconds) {
    to.add(self_catalog::web_certificate_expiry, {}, *expiry);
  }
  for (const CollectorHealth& collector : state.collectors) add_collector(to, collector);
  for (const PassDuration& pass : state.passes) {
    to.add(self_catalog::sample_duration,
           Labels({{"collector", pass.collector}, {"gpu", std::to_string(pass.gpu)}, {"tier", pass.tier}}),
           pass.seconds);
  }
  for (const auto& [part, is_up] : state.parts) {
    to.add(self_catalog::part_up, Labels({{"part", part}}), flag(is_up));
  }
  for (const auto& [vendor, count] : state.pci_devices) {
    to.add(self_catalog::pci_devices, Labels({{"vendor", vendor}}), count);
  }
  for (const auto& [vendor, count] : state.devices_expected) {
    to.add(self_catalog::devices_expected, Labels({{"vendor", vendor}}), count);
  }
  for (const auto& [code, count] : state.http_requests) {
    to.add(self_catalog::http_requests, Labels({{"code", std::to_string(code)}}), static_cast<double>(count));
  }
  if (const auto& drm = state.drm_scans) {
    to.add(self_catalog::drm_scan_duration, {}, drm->scan_seconds);
    to.add(self_catalog::drm_processes_inaccessible, {}, drm->inaccessible);
    to.add(self_catalog::drm_malformed_lines, {}, static_cast<double>(drm->malformed));
  }
  to.add(self_catalog::log_dropped, {}, static_cast<double>(state.log_dropped));
  if (state.process) add_process(to, *state.process);
}

}  // namespace gpumeter
