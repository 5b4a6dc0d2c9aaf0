#include "daemon/cli/once.hpp"

#include <cstdio>
#include <memory>
#include <thread>

#include "build_info.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/event_source.hpp"
#include "collectors/api/sampling.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/builtin.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/cli/survey.hpp"
#include "daemon/drm/scans.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/self/metrics.hpp"
#include "exporter/health/report.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter {
namespace {

struct Reading {
  const SurveyedDevice* device;
  std::unique_ptr<DeviceSession> session;
  bool up = false;
};

Reading open(const SurveyedDevice& device, const FleetSettings& settings, const WorkloadSettings& workloads,
             const std::shared_ptr<Store>& store, const Clock& clock) {
  const DeviceIdentity identity{device.known.collector, device.known.index, device.known.info,
                                name_of(settings.devices.names, device.known.info)};
  auto session = std::make_unique<DeviceSession>(device.collector->device(device.known.info), identity,
                                                 settings.labels, store, clock, workloads);
  Reading reading{&device, std::move(session)};
  const Result<Done> attached = reading.session->attach(device.known.info);
  if (!attached) std::fprintf(stderr, "gpumeter: %s\n", attached.error().message().c_str());
  reading.up = static_cast<bool>(attached);
  return reading;
}

void read_all_tiers(Reading& reading, const SamplingIntervals& intervals) {
  for (const Tier tier : {Tier::once, Tier::fast, Tier::normal, Tier::slow}) {
    if (reading.up) reading.up = reading.session->run(tier, intervals, nullptr) != PassOutcome::gone;
  }
  reading.up = reading.up && !reading.session->is_silent();
  if (!reading.up) reading.session->hide();
}

void add_up(const std::vector<Reading>& readings, const std::vector<KnownDevice>& missing,
            const FleetSettings& settings, SeriesList& to) {
  const auto add = [&](const KnownDevice& known, bool up) {
    const Labels labels(known.info, known.index, name_of(settings.devices.names, known.info),
                        settings.labels);
    to.add(catalog::up, labels, up ? 1 : 0);
  };
  for (const Reading& reading : readings) add(reading.device->known, reading.up);
  for (const KnownDevice& known : missing) add(known, false);
}

std::vector<DeviceIdentity> present(const std::vector<Reading>& readings, const FleetSettings& settings) {
  std::vector<DeviceIdentity> devices;
  for (const Reading& reading : readings) {
    const KnownDevice& known = reading.device->known;
    if (reading.up)
      devices.push_back(
          {known.collector, known.index, known.info, name_of(settings.devices.names, known.info)});
  }
  return devices;
}

void add_self(const config::Config& config, const Survey& survey, const std::vector<Reading>& readings,
              SeriesList& to) {
  SelfState self;
  self.build = {build::kVersion, build::kRevision, build::kBranch, build::kCompiler};
  self.config_reload_timestamp_seconds = to_seconds(SystemClock().realtime());
  for (const auto& [name, works] : survey.working) {
    CollectorHealth health{name, works};
    for (const Reading& reading : readings) {
      if (reading.device->known.collector != name) continue;
      ++health.devices;
      add_errors(health.read_errors[reading.device->known.index], reading.session->errors());
    }
    self.collectors.push_back(std::move(health));
  }
  self.simulated = simulates(config);
  self.devices_expected = config.of<DeviceOptions>().expected.by_vendor;
  for (const auto& vendor : survey.bus.by_vendor) self.pci_devices.emplace_back(vendor);
  if (const Result<ProcessStats> process = read_process_stats("/proc")) self.process = *process;
  add_self_series(self, to);
}

/// One turn of those parts that are on a single page. Their series leave the store with them.
std::vector<std::shared_ptr<Part>> read_parts(const config::Config& config, Machine& machine, Store& store,
                                              const Clock& clock, Log& log) {
  store.reserve(catalogue_families(builtin_collectors()));
  std::vector<std::shared_ptr<Part>> parts;
  for (const PartEntry* const entry : builtin_parts()) {
    if (!entry->is_on_single_page) continue;
    const void* const options = entry->options == nullptr ? nullptr : config.at(*entry->options->type);
    const Nanoseconds interval = config.of<SamplingIntervals>().normal;
    const auto part =
        entry->open({entry->name, store, machine, clock, log, config.of<Paths>(), interval, options});
    if (part != nullptr) parts.push_back(part);
  }
  for (const auto& part : parts) part->turn(clock.monotonic());
  return parts;
}

}  // namespace

void sample_once(const config::Config& config, int passes, const std::function<void(const Store&)>& use) {
  const SystemClock clock;
  const FleetSettings settings = fleet_settings_of(config);
  jobs::UserNames names;
  const WorkloadSettings workloads =
      workload_settings_of(config, clock, [&](std::uint32_t uid) { return names.of(uid); });
  const auto store = std::make_shared<Store>();
  const auto scans = std::make_shared<SingleScans>(scan_sources_of(config.of<Paths>()));
  const Survey found = survey(config, clock, scans);
  for (const std::string& note : found.notes) std::fprintf(stderr, "gpumeter: %s\n", note.c_str());
  std::vector<Reading> readings;
  const auto listen = [&] {  // a driver counts events only while a collector waits for them
    for (const std::unique_ptr<Collector>& collector : found.collectors) {
      auto* const watcher = dynamic_cast<WatchesEvents*>(collector.get());
      if (watcher != nullptr) watcher->wait_for_events(Nanoseconds{0});
    }
  };
  for (const SurveyedDevice& device : found.devices)
    readings.push_back(open(device, settings, workloads, store, clock));
  for (int pass = 0; pass < passes; ++pass) {
    if (pass > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    listen();
    scans->scan();
    for (Reading& reading : readings) read_all_tiers(reading, settings.intervals);
  }
  SeriesList own(store->attach());
  add_up(readings, found.missing, settings, own);
  add_self(config, found, readings, own);
  own.commit(clock.monotonic());
  Machine machine;
  machine.device_labels = settings.labels;
  if (workloads.book) machine.workloads = std::make_shared<const WorkloadSettings>(workloads);
  machine.read_devices.publish(present(readings, settings));
  Log log(clock, config.of<Logging>());
  const auto parts = read_parts(config, machine, *store, clock, log);
  use(*store);
}

std::string page_once(const config::Config& config, int passes) {
  std::string page;
  sample_once(config, passes, [&](const Store& store) {
    TextView view(store);
    view.select(config.of<PageSelection>());
    page = view.render(Format::text).text;
  });
  return page;
}

}  // namespace gpumeter
