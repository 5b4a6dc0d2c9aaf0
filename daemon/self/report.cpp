#include "daemon/self/report.hpp"

#include <sys/resource.h>

#include <optional>
#include <string>
#include <utility>

#include "build_info.hpp"
#include "daemon/self/metrics.hpp"
#include "exporter/tls/context.hpp"

namespace gpumeter {

void SelfReport::reloaded(bool successfully) {
  MutexLock lock(mutex_);
  reload_ok_ = successfully;
  if (successfully) reloaded_at_ = sources_.clock.realtime();
}

void SelfReport::publish() {
  SelfState self;
  self.build = {build::kVersion, build::kRevision, build::kBranch, build::kCompiler};
  {
    MutexLock lock(mutex_);
    self.config_reload_successful = reload_ok_;
    self.config_reload_timestamp_seconds = to_seconds(reloaded_at_);
  }
  if (sources_.web != nullptr) {
    const WebReload web = sources_.web->last_reload();
    self.web_config = {{web.is_successful, to_seconds(web.loaded_at)}};
    const auto tls = sources_.web->generation()->tls;
    if (tls != nullptr) self.certificate_expiry_timestamp_seconds = static_cast<double>(tls->not_after());
  }
  if (sources_.drm != nullptr) self.drm_scans = sources_.drm->figures();
  add_bus(self);
  sources_.fleet.describe(self);
  self.simulated = sources_.simulates();
  self.devices_expected = sources_.expected();
  self.log_dropped = sources_.log.dropped();
  self.http_requests = sources_.server.counts();
  for (const auto& [name, is_up] : sources_.parts.states()) self.parts.emplace_back(name, is_up);
  report_descriptors();
  if (Result<ProcessStats> process = read_process_stats("/proc")) self.process = *process;
  add_self_series(self, series_);
  series_.commit(sources_.clock.monotonic());
}

void SelfReport::add_bus(SelfState& self) {
  const std::optional<Bus> bus = sources_.bus.bus();
  if (bus) {
    for (const auto& vendor : bus->by_vendor) self.pci_devices.emplace_back(vendor);
  }
  const bool is_late = sources_.bus.is_late();
  if (std::exchange(bus_was_late_, is_late) == is_late) return;
  if (!is_late) return sources_.log.info("the PCI bus answers again");
  sources_.log.error("the PCI bus does not answer; gpumeter_pci_devices is omitted until it answers");
}

void SelfReport::report_descriptors() {
  const bool lacks = sources_.server.lacks_descriptors();
  if (std::exchange(lacked_descriptors_, lacks) == lacks) return;
  if (!lacks) return sources_.log.info("the file descriptors suffice again for HTTP clients");
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  sources_.log.warn(
      "file descriptors run out; connections of HTTP clients end early, idle ones first. Raise LimitNOFILE= "
      "of "
      "the service, or find the clients that hold connections open",
      {{"limit", std::to_string(most.rlim_cur)}});
}

}  // namespace gpumeter
