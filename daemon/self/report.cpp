#include "daemon/self/report.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/build_info.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/api/self_catalog.hpp"
#include "exporter/tls/context.hpp"

namespace gpumeter {
namespace {

/// Fields of /proc/self/stat, by proc(5).
enum StatField { kUserTicks = 14, kSystemTicks = 15, kThreads = 20, kStartTicks = 22, kVirtual, kResident };

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Returns 0 if the text has no such number; the kernel always prints it.
double number_in(std::string_view stat, StatField field) noexcept {
  return parse_number<double>(proc::stat_field(stat, field)).value_or(0);
}

/// Returns the number that follows `key` at the start of a line.
std::optional<double> number_after(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    double number = 0;
    if (rest >> number) return number;
    return line.find("unlimited") < line.size() ? std::optional(std::numeric_limits<double>::infinity())
                                                : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> count_entries(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error) return std::nullopt;
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

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

Result<ProcessStats> read_process_stats(const std::string& procfs) {
  const auto stat = read_file(procfs + "/self/stat");
  const auto limits = read_file(procfs + "/self/limits");
  const auto machine = read_file(procfs + "/stat");
  const auto open_fds = count_entries(procfs + "/self/fd");
  if (!stat || !limits || !machine || !open_fds) return Error("cannot read " + procfs + "/self");
  const auto boot_time = number_after(*machine, "btime ");
  const auto max_fds = number_after(*limits, "Max open files");
  if (proc::stat_field(*stat, kResident).empty() || !boot_time || !max_fds) {
    return Error(procfs + "/self: does not match proc(5)");
  }
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessStats{
      .cpu_seconds = (number_in(*stat, kUserTicks) + number_in(*stat, kSystemTicks)) / ticks_per_second,
      .start_time_seconds = *boot_time + number_in(*stat, kStartTicks) / ticks_per_second,
      .virtual_bytes = number_in(*stat, kVirtual),
      .resident_bytes = number_in(*stat, kResident) * static_cast<double>(sysconf(_SC_PAGESIZE)),
      .threads = number_in(*stat, kThreads),
      .open_fds = *open_fds,
      .max_fds = *max_fds,
  };
}

void add_self_series(const SelfState& state, SeriesList& to) {
  add_build(to, state.build);
  to.add(self_catalog::simulated, {}, flag(state.simulated));
  to.add(self_catalog::config_reload_successful, {}, flag(state.config_reload_successful));
  to.add(self_catalog::config_reload_timestamp, {}, state.config_reload_timestamp_seconds);
  if (const auto& web = state.web_config) {
    to.add(self_catalog::web_config_reload_successful, {}, flag(web->is_successful));
    to.add(self_catalog::web_config_reload_timestamp, {}, to_seconds(web->loaded_at));
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
  for (const Labels& given : state.given_devices) to.add(self_catalog::given_device_info, given, 1);
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
    self.web_config = sources_.web->last_reload();
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
    self.given_devices = bus->given();
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
