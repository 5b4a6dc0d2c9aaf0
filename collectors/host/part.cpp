#include "collectors/host/part.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/sources/host.hpp"
#include "collectors/sources/sysfs.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::host {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;

// Where distributions mount the hierarchies: v2 alone, v2 beside v1 (systemd's hybrid mode), v1.
constexpr std::string_view kUnified[] = {"/fs/cgroup", "/fs/cgroup/unified"};
constexpr std::string_view kAccounting[] = {"/fs/cgroup/cpuacct", "/fs/cgroup/cpu,cpuacct"};

// The root has the CPU time of the whole machine; ".." leads out of the namespace.
bool is_within(std::string_view group) noexcept {
  return group.size() > 1 && group.starts_with('/') && group.find("/..") == std::string_view::npos;
}

/// The seconds of "... total=MICROSECONDS".
std::optional<double> total_of(std::string_view fields) noexcept {
  constexpr std::string_view kTotal = "total=";
  while (!fields.empty()) {
    const std::string_view field = take_until(fields, ' ');
    if (!field.starts_with(kTotal)) continue;
    const auto microseconds = parse_number<std::uint64_t>(trimmed(field.substr(kTotal.size())));
    if (!microseconds) return std::nullopt;
    return static_cast<double>(*microseconds) * kMicro;
  }
  return std::nullopt;
}

}  // namespace

Pressure parse_pressure(std::string_view text) noexcept {
  Pressure pressure;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view waiting = take_until(line, ' ');
    if (waiting == "some") pressure.some = total_of(line);
    if (waiting == "full") pressure.full = total_of(line);
  }
  return pressure;
}

Pressure read_pressure(const std::string& procfs_root, const std::string& resource) {
  return parse_pressure(sysfs::read_text(procfs_root + "/pressure/" + resource));
}

std::optional<double> parse_cpu_stat(std::string_view text) noexcept {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ' ') != "usage_usec") continue;
    const auto microseconds = parse_number<std::uint64_t>(trimmed(line));
    if (!microseconds) return std::nullopt;
    return static_cast<double>(*microseconds) * kMicro;
  }
  return std::nullopt;
}

std::optional<double> cpu_seconds(const std::string& sysfs_root, const std::string& group) {
  if (!is_within(group)) return std::nullopt;
  for (const std::string_view mount : kUnified) {
    const auto seconds =
        parse_cpu_stat(sysfs::read_text(sysfs_root + std::string(mount) + group + "/cpu.stat"));
    if (seconds) return seconds;
  }
  for (const std::string_view mount : kAccounting) {
    const auto nanoseconds = sysfs::read_integer(sysfs_root + std::string(mount) + group + "/cpuacct.usage");
    if (nanoseconds && *nanoseconds >= 0) return static_cast<double>(*nanoseconds) * kNano;
  }
  return std::nullopt;
}

namespace {

constexpr Nanoseconds kEvery = std::chrono::seconds(10);
constexpr Nanoseconds kUntilFirst = std::chrono::seconds(1);  // while no device is read

constexpr const char* kResources[] = {"memory", "io"};

struct Placed {
  const DeviceIdentity* device;
  Labels labels;
  pci::Place place;
};

bool same_device(const DeviceIdentity& a, const DeviceIdentity& b) {
  return a.index == b.index && a.name == b.name && a.info == b.info;
}

bool has_link(const DeviceInfo& from, const DeviceInfo& to) {
  return std::ranges::find(from.linked_to, to.pci_address) != from.linked_to.end();
}

bool share_switch(const DeviceInfo& one, const DeviceInfo& other) {
  return std::ranges::any_of(one.linked_to, [&](const std::string& end) {
    return end.starts_with(pci::kSwitchPrefix) &&
           std::ranges::find(other.linked_to, end) != other.linked_to.end();
  });
}

// A link that one side reports leads both ways.
pci::Path path_of(const Placed& from, const Placed& to) {
  const DeviceInfo& one = from.device->info;
  const DeviceInfo& other = to.device->info;
  const bool are_linked = has_link(one, other) || has_link(other, one) || share_switch(one, other);
  return are_linked ? pci::Path::link : pci::path_between(from.place, to.place);
}

class Host final : public Part {
 public:
  explicit Host(const PartContext& context)
      : machine_(context.machine),
        paths_(context.paths),
        topology_(context.store.attach({}, context.name)),
        readings_(context.store.attach({}, context.name)) {}

  // A machine without devices has none of these series.
  Nanoseconds turn(Nanoseconds now) override {
    const auto devices = machine_.read_devices.get();
    if (!std::ranges::equal(*devices, devices_, same_device)) {
      devices_ = *devices;
      publish_topology(now);
    }
    if (!devices_.empty()) {
      add_pressure();
      add_workloads();
    }
    readings_.commit(now);
    return devices_.empty() ? kUntilFirst : kEvery;
  }

 private:
  void publish_topology(Nanoseconds now);
  void add_pressure();
  void add_workloads();

  const Machine& machine_;
  const Paths& paths_;
  SeriesList topology_;
  SeriesList readings_;
  std::vector<DeviceIdentity> devices_;  ///< of the last topology
};

void Host::publish_topology(Nanoseconds now) {
  std::vector<Placed> placed;
  if (devices_.size() > kMostInTopology) return topology_.commit(now);
  for (const DeviceIdentity& device : devices_) {
    auto place = pci::place_of(paths_.sysfs, device.info.pci_address);
    const Labels labels(device.info, device.index, device.name, machine_.device_labels);
    if (place) placed.push_back({&device, labels, *std::move(place)});
  }
  for (const Placed& from : placed) {
    for (const Placed& to : placed) {
      if (&from == &to) continue;
      const std::string path(to_string(path_of(from, to)));
      topology_.add(catalog::topology_info,
                    from.labels.with({{"peer", to.device->info.uuid}, {"path", path}}), 1);
    }
  }
  topology_.commit(now);
}

void Host::add_pressure() {
  for (const char* const resource : kResources) {
    const Pressure pressure = read_pressure(paths_.procfs, resource);
    const auto add = [&](const char* waiting, const std::optional<double>& seconds) {
      const Labels labels = {{"resource", resource}, {"waiting", waiting}};
      if (seconds) readings_.add(catalog::host_pressure_seconds, labels, *seconds);
    };
    add("some", pressure.some);
    add("full", pressure.full);
  }
}

void Host::add_workloads() {
  if (machine_.workloads == nullptr) return;
  for (const auto& workload : machine_.workloads->book->workloads()) {
    const std::optional<std::string>& group = workload.facts.group.value();
    const auto seconds = group ? cpu_seconds(paths_.sysfs, *group) : std::nullopt;
    const Labels labels = {{"kind", std::string(to_string(workload.id.kind))},
                           {"workload", workload.id.name}};
    if (seconds) readings_.add(catalog::workload_cpu_seconds, labels, *seconds);
  }
}

constexpr const MetricDescriptor* kFamilies[] = {&catalog::topology_info, &catalog::host_pressure_seconds,
                                                 &catalog::workload_cpu_seconds};

}  // namespace

const PartEntry kPart = {
    .name = "host", .families = kFamilies, .is_on_single_page = true, .open = open_part<Host>};

}  // namespace gpumeter::host
