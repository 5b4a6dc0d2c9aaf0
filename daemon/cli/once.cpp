#include "daemon/cli/once.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/build_info.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/event_source.hpp"
#include "collectors/api/sampling.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/builtin.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/sources/pci.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/drm/scans.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/self/report.hpp"
#include "daemon/setup.hpp"
#include "exporter/health/report.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter {
namespace {

/// A device of one survey, with the index that the daemon would assign.
struct SurveyedDevice {
  KnownDevice known;
  Collector* collector;
};

/// One discovery without threads, for commands that print and exit. Blocks in drivers.
struct Survey {
  std::vector<std::unique_ptr<Collector>> collectors;
  std::vector<SurveyedDevice> devices;  ///< by index
  std::vector<std::string> notes;       ///< sources that cannot be read, with reason and remedy
  std::map<std::string, bool> working;  ///< by name, for all enabled collectors: false if opening or
                                        ///< discovery failed
  std::map<std::string, CollectorTrouble> troubles;  ///< of every collector, by name
  std::vector<KnownDevice> missing;  ///< known devices of enabled collectors that were not found, by uuid
  Bus bus;
};

Result<Discovery> discover(const CollectorEntry& entry, const CollectorContext& context, Survey& survey) {
  Result<std::unique_ptr<Collector>> opened = entry.open(context);
  if (!opened) return opened.error();
  survey.collectors.push_back(*std::move(opened));
  return survey.collectors.back()->discover();
}

using Row = std::array<std::string, 6>;
using SourceRow = std::array<std::string, 4>;

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

Row row_of(const SurveyedDevice& device) {
  const DeviceInfo& info = device.known.info;
  return {std::to_string(device.known.index),
          info.uuid,
          or_dash(info.model),
          or_dash(info.pci_address),
          or_dash(info.driver),
          device.known.collector};
}

std::string_view word_of(ReadStatus status) noexcept {
  if (status == ReadStatus::ok) return "read";
  return status == ReadStatus::unsupported ? "absent" : to_string(status);
}

SourceRow row_of(unsigned index, const SourceReport& report) {
  const std::string remedy = report.remedy.empty() ? "" : " (" + report.remedy + ")";
  return {std::to_string(index), report.what, std::string(word_of(report.status)), report.where + remedy};
}

std::vector<SourceRow> source_rows(const Survey& found) {
  std::vector<SourceRow> rows = {{"GPU", "SOURCE", "STATE", "FROM"}};
  for (const SurveyedDevice& device : found.devices) {
    const auto* const collector = dynamic_cast<const ReportsSources*>(device.collector);
    if (collector == nullptr) continue;
    for (const SourceReport& report : collector->sources_of(device.known.info))
      rows.push_back(row_of(device.known.index, report));
  }
  return rows;
}

template <class AnyRow>
std::string table_of(const std::vector<AnyRow>& rows) {
  std::array<std::size_t, std::tuple_size_v<AnyRow>> width{};
  for (const AnyRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const AnyRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line.append(row[i]).append(width[i] + 2 - row[i].size(), ' ');
    text.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return text;
}

std::vector<UnreadDevice> unread_of(const Survey& found) {
  std::vector<DeviceStatus> read;
  for (const SurveyedDevice& device : found.devices) {
    DeviceStatus& status = read.emplace_back();
    status.pci_address = device.known.info.pci_address;
  }
  return unread_devices(found.bus, read, found.troubles);
}

/// The notes of collectors about a card that is listed as unread would repeat it.
bool repeats(const std::string& note, const std::vector<UnreadDevice>& unread) {
  return std::ranges::any_of(unread, [&note](const UnreadDevice& device) {
    return note.find(": " + device.pci_address + ": ") != std::string::npos;
  });
}

/// Returns the contents of the PCI bus; may hang in a driver.
Bus bus_of(const config::Config& config) {
  Bus bus;
  if (!has_bus(config)) return bus;
  const SystemClock clock;
  pci::Scan scan("bus", clock);
  bus.host = look_at_host(config.of<Paths>().sysfs);
  for (const pci::Function& adapter : scan.adapters(config.of<Paths>().sysfs).adapters) bus.add(adapter);
  if (bus.lends()) bus.host.machines = machines_with_devices(config.of<Paths>().procfs);
  return bus;
}

/// `drm_users`: for collectors; null: they know no clients.
Survey survey(const config::Config& config, const Clock& clock,
              const std::shared_ptr<DrmUsers>& drm_users = nullptr) {
  Survey survey;
  DeviceDirectory directory(config.of<Paths>().state);
  if (const Result<Done> loaded = directory.load(); !loaded) survey.notes.push_back(loaded.error().message());
  forget_simulated(directory, config);
  IndexKeeper indexes(std::move(directory), nullptr, clock);
  survey.bus = bus_of(config);
  indexes.order_by(survey.bus.addresses);
  for (const CollectorEntry& entry : builtin_collectors()) {
    survey.troubles[std::string(entry.name)].is_enabled = is_enabled(entry, config);
  }
  std::map<std::string, Collector*> owner;
  for (const CollectorEntry* entry : enabled_collectors(config)) {
    const std::string name(entry->name);
    const Result<Discovery> found = discover(*entry, context_of(config, *entry, clock, drm_users), survey);
    survey.working[name] = static_cast<bool>(found);
    if (!found) {
      survey.notes.push_back(found.error().with(name).message());
      survey.troubles[name].error = found.error().message();
      continue;
    }
    owner[name] = survey.collectors.back().get();
    for (const std::string& note : found->notes) survey.notes.push_back(name + ": " + note);
    for (const DeviceInfo& info : found->devices) indexes.add({name, info});
  }
  for (const IndexKeeper::Find& find : indexes.take_found()) {
    survey.devices.push_back({indexes.admit(find).device, owner.at(find.collector)});
  }
  for (const auto& [uuid, known] : indexes.devices()) {
    const bool is_found = std::ranges::any_of(
        survey.devices, [&](const SurveyedDevice& device) { return device.known.info.uuid == uuid; });
    if (!is_found && survey.working.contains(known.collector)) survey.missing.push_back(known);
  }
  std::sort(survey.devices.begin(), survey.devices.end(),
            [](const auto& a, const auto& b) { return a.known.index < b.known.index; });
  return survey;
}

}  // namespace

std::string device_list(const config::Config& config) {
  const SystemClock clock;
  const Survey found = survey(config, clock);
  std::vector<Row> rows = {{"GPU", "UUID", "MODEL", "PCI ADDRESS", "DRIVER", "COLLECTOR"}};
  for (const SurveyedDevice& device : found.devices) rows.push_back(row_of(device));
  std::string text = found.devices.empty() ? "no GPU found\n" : table_of(rows);
  const std::vector<SourceRow> sources = source_rows(found);
  if (sources.size() > 1) text.append("\n").append(table_of(sources));
  const std::vector<UnreadDevice> unread = unread_of(found);
  if (!unread.empty()) text.append("\non the bus and not read:\n");
  for (const UnreadDevice& device : unread) text.append(to_string(device)).append("\n");
  for (const KnownDevice& device : found.missing) {
    text += "missing: GPU " + std::to_string(device.index) + " " + device.info.uuid +
            "; if it was removed on purpose: gpumeter forget " + device.info.uuid + "\n";
  }
  for (const std::string& note : found.notes) {
    if (!repeats(note, unread)) text.append(note).append("\n");
  }
  return text;
}

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
  self.given_devices = survey.bus.given();
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
