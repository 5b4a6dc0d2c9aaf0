#include "daemon/bus/bus.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter {
namespace {

Host::Node node_at(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 && errno == ENOENT) {
    return {
        "the device node " + path + " is missing",
        "create it: nvidia-modprobe -c 0, or start nvidia-persistenced; in a container, pass the driver in"};
  }
  if (faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0 || errno != EACCES) return {};
  return {"the user of gpumeter may not open " + path,
          "add the user to the group " + std::to_string(status.st_gid) +
              " of the node, such as render or video, or correct the permissions of the node"};
}

/// The vendors whose GPUs are reported. A vendor's collector has the vendor's name.
struct Vendor {
  std::string_view name;
  std::string_view module;  ///< the kernel module that makes its GPUs readable
};
constexpr Vendor kVendors[] = {{"nvidia", "nvidia"}, {"amd", "amdgpu"}, {"intel", "i915"}};

struct Diagnosis {
  std::string why;
  std::string remedy;
};

std::string pci_id(const pci::Function& function) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "%04x:%04x", function.vendor, function.device);
  return text.data();
}

bool is_readable_by(const Vendor& vendor, std::string_view driver) {
  return driver == vendor.module || (driver == "radeon" && vendor.name == "amd") ||
         (driver == "xe" && vendor.name == "intel");
}

bool is_for_machines(std::string_view driver) {
  return driver.starts_with("vfio") || driver == "pci-stub" || driver == "xen-pciback";
}

Diagnosis without_driver(const pci::Function& function, const Vendor& vendor, const Host& host) {
  const std::string module(vendor.module);
  if (!host.modules.contains(module)) {
    return {"no driver is bound to it: the kernel module " + module + " is not loaded",
            "modprobe " + module + "; if there is no such module, install the driver"};
  }
  return {"no driver is bound to it, although the kernel module " + module + " is loaded",
          "see dmesg for the reason; then echo " + pci::to_string(function.address) +
              " > /sys/bus/pci/drivers/" + module + "/bind"};
}

Diagnosis with_other_driver(const pci::Function& function, const Vendor& vendor, const Host& host) {
  const std::string module(vendor.module);
  if (const auto found = host.machines.find(pci::to_string(function.address)); found != host.machines.end()) {
    return {"it is given to the virtual machine " + found->second,
            "run gpumeter in the virtual machine to read it"};
  }
  const std::string why = "it is bound to " + function.driver;
  if (is_for_machines(function.driver)) {
    return {why + ", for a virtual machine",
            "none if a virtual machine uses it; otherwise bind it to " + module};
  }
  return {why + ", which the collector " + std::string(vendor.name) + " does not read",
          "bind it to " + module + " instead; install that driver if necessary"};
}

Diagnosis diagnose(const pci::Function& function, const Vendor& vendor, const Host& host,
                   const CollectorTrouble& collector) {
  const std::string name(vendor.name);
  if (!collector.is_enabled) {
    return {"the collector " + name + " is disabled",
            "set collectors." + name + ".enabled: true, or start with --collector." + name};
  }
  if (function.driver.empty()) return without_driver(function, vendor, host);
  if (!is_readable_by(vendor, function.driver)) return with_other_driver(function, vendor, host);
  if (vendor.name == "nvidia" && !host.nvidia_node.why.empty()) {
    return {host.nvidia_node.why, host.nvidia_node.remedy};
  }
  if (!collector.error.empty()) return {"its collector does not work: " + collector.error, "see the reason"};
  return {"its driver does not offer it", "see the log of gpumeter, and dmesg"};
}

/// A device of an earlier run that is missing is not read, even if the bus shows its function again.
bool is_read(const pci::Function& function, std::span<const DeviceStatus> devices) {
  const std::string address = pci::to_string(function.address);
  return std::ranges::any_of(devices, [&](const DeviceStatus& device) {
    return device.pci_address == address && device.state != kMissing;
  });
}

/// The functions that a device argument passes through: `vfio-pci,host=0000:0b:00.0,id=hostdev0`, or as
/// libvirt writes it, {"driver":"vfio-pci","host":"0000:0b:00.0","id":"hostdev0"}.
std::optional<pci::Address> passed_by(std::string_view argument) {
  const bool is_json = argument.starts_with(R"({"driver":"vfio-pci")");
  if (!is_json && !argument.starts_with("vfio-pci,")) return std::nullopt;
  const std::string_view key = is_json ? R"(,"host":")" : ",host=";
  const std::size_t at = argument.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  argument.remove_prefix(at + key.size());
  return pci::parse_address(argument.substr(0, argument.find_first_of(",\"")));
}

constexpr auto kEvery = std::chrono::seconds(30);
constexpr auto kAgain =
    std::chrono::seconds(5);  // after a function was silent, or the kernel refused a thread
constexpr auto kStale = std::chrono::seconds(60);
constexpr Nanoseconds kAtMost = std::chrono::seconds(2);  // for a look at all processes

}  // namespace

Host look_at_host(const std::string& sysfs_root, const std::string& dev_root) {
  Host host;
  for (const char* module : {"nvidia", "amdgpu", "radeon", "i915", "xe"}) {
    std::error_code ignored;
    if (std::filesystem::exists(sysfs_root + "/module/" + module, ignored)) host.modules.insert(module);
  }
  if (host.modules.contains("nvidia")) host.nvidia_node = node_at(dev_root + "/nvidiactl");
  return host;
}

std::map<std::string, std::string> machines_with_devices(const std::string& procfs) {
  constexpr std::size_t kLongestGroups = 65536;
  constexpr std::size_t kLongestCommand = 1U << 20U;  // libvirt's of a usual machine has 6 KB
  std::map<std::string, std::string> machines;
  std::error_code error;
  std::filesystem::directory_iterator entry(procfs, error);
  for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
    const auto pid = parse_number<int>(entry->path().filename().string());
    if (!pid) continue;
    const std::string groups = read_small_file(proc::path(procfs, *pid, "cgroup"), kLongestGroups).text;
    const cgroup::Path group = cgroup::most_telling_path(groups);
    if (group.kind != cgroup::Kind::vm || !group.owner.empty()) continue;
    const std::string command = read_small_file(proc::path(procfs, *pid, "cmdline"), kLongestCommand).text;
    for (std::string_view rest = command; !rest.empty();) {
      if (const auto address = passed_by(take_until(rest, '\0')))
        machines.emplace(pci::to_string(*address), cgroup::attribution_of(group).workload);
    }
  }
  return machines;
}

bool Bus::lends() const {
  return std::ranges::any_of(functions, [](const auto& each) { return is_for_machines(each.driver); });
}

std::vector<Labels> Bus::given() const {
  std::vector<Labels> given;
  for (const pci::Function& function : functions) {
    const auto machine = host.machines.find(pci::to_string(function.address));
    if (machine == host.machines.end()) continue;
    given.push_back(Labels({{"pci_address", machine->first},
                            {"vendor", std::string(pci::vendor_word(function.vendor))},
                            {"kind", std::string(to_string(cgroup::Kind::vm))},
                            {"workload", machine->second}}));
  }
  return given;
}

void Bus::add(const pci::Function& adapter) {
  const std::string vendor(pci::vendor_word(adapter.vendor));
  const bool has_driver = pci::is_gpu_driver(adapter.driver);
  const bool lacks_driver = adapter.driver.empty() && vendor != "other";
  functions.push_back(adapter);
  if (has_driver) addresses.push_back(pci::to_string(adapter.address));
  if (has_driver || lacks_driver) ++by_vendor[vendor];
}

std::vector<UnreadDevice> unread_devices(const Bus& bus, std::span<const DeviceStatus> devices,
                                         const std::map<std::string, CollectorTrouble>& collectors) {
  std::vector<UnreadDevice> unread;
  for (const pci::Function& function : bus.functions) {
    const auto* const vendor = std::ranges::find(kVendors, pci::vendor_word(function.vendor), &Vendor::name);
    if (vendor == std::end(kVendors) || is_read(function, devices)) continue;
    const auto collector = collectors.find(std::string(vendor->name));
    if (collector == collectors.end()) continue;
    const Diagnosis found = diagnose(function, *vendor, bus.host, collector->second);
    unread.push_back({pci::to_string(function.address), std::string(vendor->name), pci_id(function),
                      function.driver, std::string(vendor->module), found.why, found.remedy});
  }
  return unread;
}

std::string to_string(const UnreadDevice& unread) {
  const std::string driver = unread.driver.empty() ? "" : " (" + unread.driver + ")";
  const std::string remedy = unread.remedy == "none" ? "" : "; " + unread.remedy;
  return unread.pci_address + " " + unread.vendor + " " + unread.pci_id + driver + ": " + unread.why + remedy;
}

BusWatcher::BusWatcher(std::string sysfs_root, std::string procfs, const Clock& clock, Reports reports,
                       pci::Scan::Read read)
    : sysfs_root_(std::move(sysfs_root)),
      procfs_(std::move(procfs)),
      clock_(clock),
      reports_(std::move(reports)),
      scan_("pci-function", clock, std::move(read)),
      processes_("vfio-machines", kAtMost, clock),
      seen_at_(clock.monotonic()) {}

void BusWatcher::start(Scheduler& scheduler) {
  job_.add_to(scheduler, {"bus", kStale, [self = shared_from_this()] { return self->turn(); }});
}

void BusWatcher::want(bool wanted) {
  is_wanted_ = wanted;
  job_.wake();
}

std::optional<Bus> BusWatcher::bus() const {
  if (is_late()) return std::nullopt;
  MutexLock lock(mutex_);
  return bus_;
}

bool BusWatcher::is_late() const {
  MutexLock lock(mutex_);
  return clock_.monotonic() > seen_at_ + kStale;
}

Nanoseconds BusWatcher::turn() { return look() && silent_.empty() ? kEvery : kAgain; }

bool BusWatcher::look() {
  std::optional<Bus> bus = is_wanted_ ? scan() : Bus();
  if (!bus) return false;
  reports_.seen(*bus);
  MutexLock lock(mutex_);
  bus_ = std::move(bus);
  seen_at_ = clock_.monotonic();
  return true;
}

// Returns nullopt if the kernel refused a thread.
std::optional<Bus> BusWatcher::scan() {
  const pci::Scan::Found found = scan_.adapters(sysfs_root_);
  if (!found.is_whole) return std::nullopt;
  report_silent(found.silent);
  std::map<pci::Address, pci::Function> seen;
  for (const pci::Function& adapter : found.adapters) seen.emplace(adapter.address, adapter);
  for (const std::string& name : found.silent) {
    const std::optional<pci::Address> address = pci::parse_address(name);
    if (!address) continue;
    if (const auto known = known_.find(*address); known != known_.end()) seen.insert(*known);
  }
  known_ = std::move(seen);
  Bus bus;
  if (!known_.empty()) bus.host = look_at_host(sysfs_root_);
  for (const auto& [address, adapter] : known_) bus.add(adapter);
  if (bus.lends()) bus.host.machines = machines();
  return bus;
}

const std::map<std::string, std::string>& BusWatcher::machines() {
  using Machines = std::map<std::string, std::string>;
  auto found = processes_.ask<Machines>({procfs_}, machines_with_devices).values;
  if (const auto answer = found.find(procfs_); answer != found.end()) machines_ = std::move(answer->second);
  return machines_;
}

void BusWatcher::report_silent(const std::vector<std::string>& silent) {
  const std::set<std::string> now(silent.begin(), silent.end());
  for (const std::string& name : now) {
    if (!silent_.contains(name)) reports_.function(name, false);
  }
  for (const std::string& name : silent_) {
    if (!now.contains(name)) reports_.function(name, true);
  }
  silent_ = now;
}

}  // namespace gpumeter
