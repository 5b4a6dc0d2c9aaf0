#include "collectors/host/power.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/records.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/host/part.hpp"
#include "collectors/sources/sysfs.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::host {
namespace {

using options::Option;
using options::option;
using options::Reload;

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&PowerSettings::workload_energy>("workload_energy", Reload::applies, "Divide the energy of the processors and their memory among the workloads that use a GPU, by CPU time (`gpu_workload_host_energy_joules_total`)."),
};
// clang-format on
constinit const options::Section kSection = options::section("machine", kOptions);

constexpr Nanoseconds kEvery = std::chrono::seconds(5);
/// After a longer gap a counter may have wrapped unseen, so it counts from its next reading on. A socket of 1
/// kW uses a quarter of the shortest range that is known, 65.5 kJ, in this time.
constexpr Nanoseconds kLongestGap = std::chrono::seconds(15);
constexpr double kMostOfRange = 0.25;
/// A workload of an earlier process that was not found again in this time has ended.
constexpr Nanoseconds kLongestStart = std::chrono::minutes(1);

/// Who reports a part of the machine, in the order of preference: counters of energy before powers.
enum class Origin : std::uint8_t { powercap, cray, acpi, hsmp, rail };  // rail: no part, see the help
constexpr EnumNames<Origin, 4> kOriginNames = {
    {{Origin::powercap, "powercap"}, {Origin::acpi, "acpi"}, {Origin::hsmp, "hsmp"}, {Origin::cray, "cray"}}};

enum class Quantity : std::uint8_t { power, energy };

/// What a file holds.
struct Reading {
  Quantity quantity;
  double divisor;             ///< of the file's number, to watts or joules
  double range = 0;           ///< at which a counter wraps; 0: it does not
  bool has_unknowns = false;  ///< 0 and kUnknown mean that there is no value
};
constexpr double kMicro = 1e6;
constexpr Reading kMicrowatts = {Quantity::power, kMicro};
// The firmware of Grace returns 0xFFFFFFFF mW for a reading that is not valid, and 0 before the first one
// (NVIDIA/edk2-nvidia, BpmpSsdt*.asl, TELM); the driver multiplies by 1000.
constexpr double kUnknown = 4294967295e3;
constexpr Reading kAcpi = {Quantity::power, kMicro, 0, true};

/// The energy of a meter.
struct Count {
  std::optional<double> last;  ///< the file's number
  Nanoseconds at{};            ///< of the last number, by the monotonic clock
  double joules = 0;           ///< since gpumeter's first reading
  double since = 0;            ///< Unix time of that reading in seconds; 0: an earlier version did not say
};

template <class Fields>
void fields(Fields& f, Count& count) {
  f(count.last, count.at).amounts(count.joules);
}

/// One file of one sensor.
struct Meter {
  Origin origin;
  Labels labels;
  sysfs::File file;
  Reading reading;
  Count count = {};
  ReadStatus status = ReadStatus::unsupported;  ///< of the last turn
  std::optional<double> watts;                  ///< of the last turn; of a counter the mean since `count.at`
  double added = 0;                             ///< joules of the last turn

  /// `unix_time`: in seconds.
  void turn(Nanoseconds now, double unix_time);
};

/// The growth of a counter, in its unit. One that went back by little less than its range has wrapped, any
/// other was reset.
double growth(double last, double number, double range) {
  if (number >= last) return number - last;
  const double over_the_wrap = number + range - last;
  return range > 0 && over_the_wrap <= kMostOfRange * range ? over_the_wrap : number;
}

/// The number at the start of the file: Cray's have a unit and a time after it.
Sample number_of(const sysfs::File& file) {
  std::array<char, 64> buffer;
  const sysfs::Bytes bytes = file.read(buffer);
  if (bytes.status != ReadStatus::ok) return Sample::miss(bytes.status);
  std::string_view text(buffer.data(), bytes.size);
  const auto number = take_number<std::uint64_t>(text);
  return number ? Sample::of(static_cast<double>(*number)) : Sample::miss(ReadStatus::unsupported);
}

void Meter::turn(Nanoseconds now, double unix_time) {
  watts.reset();
  added = 0;
  file.retry();
  const Sample read = number_of(file);
  const bool is_unknown = reading.has_unknowns && (read.value == 0 || read.value == kUnknown);
  status = read.status == ReadStatus::ok && is_unknown ? ReadStatus::unsupported : read.status;
  const bool is_power = reading.quantity == Quantity::power;
  if (status != ReadStatus::ok) {
    if (is_power) count.last.reset();
    return;
  }
  const double seconds = std::chrono::duration<double>(now - count.at).count();
  const bool goes_on = count.last && seconds > 0 && now - count.at <= kLongestGap;
  if (is_power) {
    watts = read.value / reading.divisor;
    if (goes_on) added = (*count.last + read.value) / 2 * seconds / reading.divisor;
  } else if (goes_on) {
    added = growth(*count.last, read.value, reading.range) / reading.divisor;
    watts = added / seconds;
  }
  const bool is_new = !count.last && count.joules == 0 && count.since == 0;
  if (is_new) count.since = unix_time;
  count = {read.value, now, count.joules + added, count.since};
}

/// Finds the sensors of a machine. A sensor that a part or rail already has is left out.
class Finder {
 public:
  explicit Finder(const std::string& sysfs) : sysfs_(sysfs) {
    find_powercap();
    find_hwmon();
    find_cray();
  }

  std::vector<Meter> take() { return std::move(found_); }

 private:
  void add(Origin origin, const Labels& labels, const std::string& path, Reading reading) {
    if (std::ranges::find(found_, labels, &Meter::labels) != found_.end()) return;
    sysfs::File file(path);
    if (file.status() == ReadStatus::gone) return;
    found_.push_back({origin, labels, std::move(file), reading});
  }
  void add_part(Origin origin, const char* domain, const std::string& socket, const std::string& path,
                Reading reading) {
    const std::string source(kOriginNames.of(origin));
    add(origin, {{"source", source}, {"domain", domain}, {"socket", socket}}, path, reading);
  }
  void add_rail(const std::string& source, const std::string& rail, const std::string& socket,
                const std::string& sensor, const std::string& path, Reading reading) {
    add(Origin::rail, {{"source", source}, {"rail", rail}, {"socket", socket}, {"sensor", sensor}}, path,
        reading);
  }

  void find_powercap();
  void find_hwmon();
  void find_acpi(const std::string& folder, const std::string& sensor);
  void find_powers(const std::string& folder, const std::string& sensor);
  void find_cray();

  const std::string& sysfs_;
  std::vector<Meter> found_;
  int hsmp_sockets_ = 0;
};

// Documentation/power/powercap/powercap.rst. intel-rapl-mmio:* are the same packages by another register.
void Finder::find_powercap() {
  constexpr std::string_view kPackage = "package-";
  const std::string folder = sysfs_ + "/class/powercap/";
  for (const std::string& zone : sysfs::list(folder)) {
    if (!zone.starts_with("intel-rapl:")) continue;
    const std::string name = sysfs::read_text(folder + zone + "/name");
    const std::string top = zone.substr(0, zone.find(':', zone.find(':') + 1));
    const std::string package = sysfs::read_text(folder + top + "/name");
    const std::string socket = package.starts_with(kPackage) ? package.substr(kPackage.size()) : "";
    const auto range = sysfs::read_integer(folder + zone + "/max_energy_range_uj");
    const Reading reading = {Quantity::energy, kMicro, static_cast<double>(range.value_or(0))};
    const std::string path = folder + zone + "/energy_uj";
    if (name == package && !socket.empty()) {
      add_part(Origin::powercap, "cpu", socket, path, reading);
    } else if (name == "dram") {
      add_part(Origin::powercap, "memory", socket, path, reading);
    } else {
      add_rail("powercap", name, socket, "", path, reading);
    }
  }
}

/// Texts of an ACPI power meter, without the number of the socket. Meters with other texts are not read: some
/// firmware also reports energies and counts of events as powers.
struct AcpiMeter {
  std::string_view text;
  const char* rail;  ///< null: processor and memory together, a part of the machine
};
// Grace: NVIDIA/edk2-nvidia, BpmpSsdt*.asl. The others: NVIDIA/srt-slurm, tests of cpu_rails.
constexpr AcpiMeter kAcpiMeters[] = {
    {"Grace Power Socket", nullptr},
    {"CPU Power Socket", "cpu"},
    {"SysIO Power Socket", "soc"},
    {"Module Power Socket", "module"},
    {"Total Power in uW socket", nullptr},
    {"Total Input Power in uW socket", nullptr},
    {"CPU Rail Power in uW socket", "cpu"},
    {"CPU Rail Input Power in uW socket", "cpu"},
    {"SOC Rail Power in uW socket", "soc"},
    {"SoC Rail Power in uW socket", "soc"},
    {"SoC Rail Input Power in uW socket", "soc"},
    {"DRAM Power socket", "memory"},
    {"DRAM Input Power in uW socket", "memory"},
};

void Finder::find_acpi(const std::string& folder, const std::string& sensor) {
  const std::string info = sysfs::read_text(folder + "/power1_oem_info");
  const std::string path = folder + "/power1_average";
  // A meter without a text measures what the maker connected to it, mostly the whole machine.
  if (info.empty()) return add_rail("acpi", "power1", "", sensor, path, kAcpi);
  const std::size_t end = std::min(info.rfind(' '), info.size() - 1);
  const auto* const meter =
      std::ranges::find(kAcpiMeters, std::string_view(info).substr(0, end), &AcpiMeter::text);
  if (meter == std::end(kAcpiMeters)) return;
  const std::string socket = info.substr(end + 1);
  if (meter->rail == nullptr) return add_part(Origin::acpi, "socket", socket, path, kAcpi);
  add_rail("acpi", meter->rail, socket, "", path, kAcpi);
}

void Finder::find_powers(const std::string& folder, const std::string& sensor) {
  const std::string chip = sysfs::read_text(folder + "/name");
  for (const std::string& file : sysfs::list(folder)) {
    const std::string power = file.substr(0, file.find('_'));
    if (!power.starts_with("power") || (file != power + "_input" && file != power + "_average")) continue;
    const std::string path = folder + "/" + file;
    if (chip == "amd_hsmp_hwmon") {
      // The driver registers the sockets in their order and does not number them (amd/hsmp/hwmon.c).
      add_part(Origin::hsmp, "cpu", std::to_string(hsmp_sockets_++), path, kMicrowatts);
      continue;
    }
    const std::string label = sysfs::read_text(folder + "/" + power + "_label");
    add_rail(chip, label.empty() ? power : label, "", sensor, path, kMicrowatts);
  }
}

// Documentation/hwmon/sysfs-interface.rst.
void Finder::find_hwmon() {
  const auto is_acpi = [](const std::string& folder) {
    return sysfs::probe(folder + "/power1_oem_info") != ReadStatus::gone;
  };
  for (const std::string& name : sysfs::list(sysfs_ + "/class/hwmon")) {
    const std::string folder = sysfs_ + "/class/hwmon/" + name;
    const std::string device = folder + "/device";
    const std::string sensor = sysfs::link_name(device);
    // Others report the sensors of GPUs and network cards.
    if (sysfs::link_name(device + "/subsystem") == "pci") continue;
    // acpi_power_meter had its files in the folder of the device until Linux 6.14.
    if (is_acpi(device)) {
      find_acpi(device, sensor);
    } else if (is_acpi(folder)) {
      find_acpi(folder, sensor);
    } else {
      find_powers(folder, sensor);
    }
  }
}

// HPE Cray EX: "81147367 J 1700061210920464 us". accelN_energy is a GPU with its share of the board.
void Finder::find_cray() {
  const std::string folder = sysfs_ + "/cray/pm_counters/";
  constexpr std::string_view kEnergy = "_energy";
  constexpr Reading kJoules = {Quantity::energy, 1};
  add_part(Origin::cray, "cpu", "", folder + "cpu_energy", kJoules);
  add_part(Origin::cray, "memory", "", folder + "memory_energy", kJoules);
  add_rail("cray", "node", "", "", folder + "energy", kJoules);
  for (const std::string& file : sysfs::list(folder)) {
    if (!file.starts_with("accel") || !file.ends_with(kEnergy)) continue;
    add_rail("cray", file.substr(0, file.size() - kEnergy.size()), "", "", folder + file, kJoules);
  }
}

/// The CPU seconds of the machine, idle ones included, from the first line of /proc/stat: user, nice, system,
/// idle, iowait, irq, softirq and steal (man 5 proc). Guests' time is in user and nice.
std::optional<double> machine_cpu_seconds(const std::string& procfs) {
  constexpr double kTicks = 100;  // USER_HZ
  const std::string text = sysfs::read_text(procfs + "/stat");
  std::string_view line = text;
  line = take_until(line, '\n');
  if (take_until(line, ' ') != "cpu") return std::nullopt;
  double sum = 0;
  line = trimmed(line);
  for (int field = 0; field < 8; ++field) {
    const auto ticks = parse_number<std::uint64_t>(take_until(line, ' '));
    if (!ticks) return std::nullopt;
    sum += static_cast<double>(*ticks);
  }
  return sum / kTicks;
}

/// The lines of the section.
constexpr std::string_view kMeter = "meter";
constexpr std::string_view kWorkload = "workload";

/// The name of a meter in the section.
std::string name_of(const Labels& labels) {
  std::string name;
  for (const auto& [key, value] : labels.pairs()) name.append(key).append("=").append(value).append(" ");
  return name;
}

class Power final : public Part, public Keeps {
 public:
  explicit Power(const PartContext& context)
      : settings_(context.settings_of<PowerSettings>()),
        machine_(context.machine),
        paths_(context.paths),
        log_(context.log),
        clock_(context.clock),
        series_(context.store.attach({}, context.name)) {}

  Nanoseconds turn(Nanoseconds now) override {
    look();
    const double unix_time = to_seconds(clock_.realtime());
    for (Meter& meter : meters_) meter.turn(now, unix_time);
    const double joules = add_meters();
    if (settings_.workload_energy) add_workloads(joules, now, unix_time);
    note_denied();
    series_.commit(now);
    return kEvery;
  }

  std::string save() const override;
  Result<Done> resume(std::string_view section, bool is_of_this_boot) override;

 private:
  void look();
  double add_meters();
  void add_workloads(double joules, Nanoseconds now, double unix_time);
  void note_denied();

  struct Share {
    std::optional<double> cpu_seconds;  ///< of the last turn; none: resumed, and not seen yet
    double joules = 0;
    double since = 0;  ///< as that of a Count
  };

  const PowerSettings settings_;
  const Machine& machine_;
  const Paths& paths_;
  Log& log_;
  const Clock& clock_;
  SeriesList series_;
  std::vector<std::string> names_;  ///< of the zones and sensors that were looked at
  std::vector<Meter> meters_;
  std::map<std::string, Count> earlier_;  ///< resumed, of meters that were not found yet
  std::map<workloads::WorkloadId, Share> shares_;
  std::optional<Nanoseconds> began_;   ///< the first turn with workloads
  std::optional<double> cpu_seconds_;  ///< of the machine, at the last turn
  bool is_denied_ = false;
};

// A sensor that was removed and another that came may have the same name.
void Power::look() {
  std::vector<std::string> names = sysfs::list(paths_.sysfs + "/class/powercap");
  for (std::string& name : sysfs::list(paths_.sysfs + "/class/hwmon")) names.push_back(std::move(name));
  names.emplace_back(sysfs::list(paths_.sysfs + "/cray/pm_counters").empty() ? "" : "cray");
  const auto is_gone = [](const Meter& meter) { return meter.status == ReadStatus::gone; };
  if (names == names_ && std::ranges::none_of(meters_, is_gone)) return;
  names_ = std::move(names);
  const std::vector<Meter> old = std::exchange(meters_, Finder(paths_.sysfs).take());
  for (Meter& meter : meters_) {
    const auto same = std::ranges::find(old, meter.labels, &Meter::labels);
    if (same != old.end()) {
      meter.count = same->count;
    } else if (const auto earlier = earlier_.extract(name_of(meter.labels))) {
      meter.count = earlier.mapped();
    }
  }
}

/// Returns the joules of the parts in this turn.
double Power::add_meters() {
  const auto is_read = [](const Meter& meter) { return meter.status == ReadStatus::ok; };
  Origin first = Origin::rail;
  for (const Meter& meter : meters_) {
    if (is_read(meter)) first = std::min(first, meter.origin);
  }
  double joules = 0;
  for (const Meter& meter : meters_) {
    const bool is_rail = meter.origin == Origin::rail;
    if (!is_read(meter) || (!is_rail && meter.origin != first)) continue;
    if (!is_rail) joules += meter.added;
    if (meter.watts) {
      series_.add(is_rail ? catalog::machine_rail_power : catalog::machine_power, meter.labels, *meter.watts);
    }
    series_.add(is_rail ? catalog::machine_rail_energy : catalog::machine_energy, meter.labels,
                meter.count.joules, SeriesPart::value, meter.count.since, true);
  }
  return joules;
}

/// The part of a workload is its part of the machine's CPU time. The rest, which includes idle time, belongs
/// to no workload.
void Power::add_workloads(double joules, Nanoseconds now, double unix_time) {
  const std::optional<double> before = std::exchange(cpu_seconds_, machine_cpu_seconds(paths_.procfs));
  if (machine_.workloads == nullptr || !cpu_seconds_) return;
  const double elapsed = before ? *cpu_seconds_ - *before : 0;
  std::map<workloads::WorkloadId, Share> shares;
  for (const auto& workload : machine_.workloads->book->workloads()) {
    const std::optional<std::string>& group = workload.facts.group.value();
    const auto seconds = group ? cpu_seconds(paths_.sysfs, *group) : std::nullopt;
    if (!seconds) continue;
    const auto known = shares_.extract(workload.id);
    Share share = known ? known.mapped() : Share{.since = unix_time};
    const std::optional<double> used = std::exchange(share.cpu_seconds, seconds);
    if (used && elapsed > 0) share.joules += joules * std::clamp((*seconds - *used) / elapsed, 0.0, 1.0);
    const Labels labels = {{"kind", std::string(to_string(workload.id.kind))},
                           {"workload", workload.id.name}};
    series_.add(catalog::workload_host_energy, labels, share.joules, SeriesPart::value, share.since);
    shares.emplace(workload.id, share);
  }
  if (!began_) began_ = now;
  const bool may_come = now - *began_ <= kLongestStart;
  std::erase_if(shares_, [&](const auto& each) { return !may_come || each.second.cpu_seconds; });
  shares.merge(shares_);
  shares_ = std::move(shares);
}

std::string Power::save() const {
  RecordWriter out;
  for (const auto& [name, count] : earlier_) out.begin(kMeter)(name, count, count.since);
  for (const Meter& meter : meters_) out.begin(kMeter)(name_of(meter.labels), meter.count, meter.count.since);
  for (const auto& [id, share] : shares_) out.begin(kWorkload)(id, share.joules, share.since);
  return out.take();
}

// The clock and the hardware's counters start again with the machine, and its workloads have ended.
Result<Done> Power::resume(std::string_view section, bool is_of_this_boot) {
  RecordReader in(section);
  std::map<std::string, Count> earlier;
  std::map<workloads::WorkloadId, Share> shares;
  while (in.next()) {
    if (in.kind() == kMeter) {
      Count& count = earlier[in.take<std::string>()];
      in(count);
      if (in.has_field()) in.amounts(count.since);
      if (!is_of_this_boot) count.last.reset();
    } else {
      in.check(in.kind() == kWorkload);
      Share& share = shares[in.take<workloads::WorkloadId>()];
      in.amounts(share.joules);
      if (in.has_field()) in.amounts(share.since);
    }
  }
  if (in.failed()) return Error("the energy of the machine, line " + std::to_string(in.line()));
  earlier_ = std::move(earlier);
  if (is_of_this_boot && settings_.workload_energy) shares_ = std::move(shares);
  return Done{};
}

// Since Linux 5.10 only root may read energy_uj (CVE-2020-8694).
void Power::note_denied() {
  const auto is_denied = [](const Meter& meter) { return meter.status == ReadStatus::denied; };
  const auto is_powercap = [](const Meter& meter) { return meter.origin == Origin::powercap; };
  const bool now = std::ranges::any_of(meters_, is_denied);
  if (std::ranges::any_of(meters_, is_powercap))
    series_.add(self_catalog::powercap_readable, {}, now ? 0 : 1);
  if (std::exchange(is_denied_, now) == now) return;
  if (!now) return log_.info("the energy of the processors is read");
  log_.info("the energy of the processors is not read: the kernel permits it to root only",
            {{"permitted_by", "gpumeter-powercap.service"}});
}

constexpr const MetricDescriptor* kFamilies[] = {
    &catalog::machine_power,       &catalog::machine_energy,       &catalog::machine_rail_power,
    &catalog::machine_rail_energy, &catalog::workload_host_energy, &self_catalog::powercap_readable};

}  // namespace

const PartEntry kPower = {.name = "power",
                          .options = &kSection,
                          .families = kFamilies,
                          .section = "energy",
                          .is_on_single_page = true,
                          .open = open_part<Power>};

}  // namespace gpumeter::host
