#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/files/context.hpp"
#include "collectors/files/readers.hpp"
#include "collectors/intel/card.hpp"
#include "collectors/intel/collector.hpp"

/// Every series of an Intel GPU: one row each, with fallbacks after their preferred source.
namespace gpumeter::intel {
namespace {

using enum Tier;
using namespace files;

// Readers of what only Intel's cards have.

IntelCard& card_of(Context& context) noexcept { return context.attached<IntelCard>(); }

/// Returns the highest of several files; a file that is missing or fails counts as no value.
Sample highest_of(Context& context, const std::vector<int>& files) noexcept {
  Sample highest = kNone;
  for (const int file : files) {
    const Sample sample = context.number(file);
    const bool is_better =
        sample.status == ReadStatus::ok && (highest.status != ReadStatus::ok || sample.value > highest.value);
    if (is_better || (sample.status != ReadStatus::ok && highest.status == ReadStatus::unsupported)) {
      highest = sample;
    }
  }
  return highest;
}

enum class GtKind : std::uint64_t { graphics, media };

/// The highest number in that file of the GTs of a kind.
template <std::string Gt::*path>
Reader highest(Context& context, const ReadSource& source) {
  const bool wants_media = static_cast<GtKind>(source.argument) == GtKind::media;
  std::vector<int> files;
  for (const Gt& gt : card_of(context).gts()) {
    const auto file = gt.is_media == wants_media ? context.number_file_at(gt.*path) : std::nullopt;
    if (file) files.push_back(*file);
  }
  if (files.empty()) return {};
  return probed(context, [&context, files = std::move(files)] { return highest_of(context, files); });
}

/// Milliseconds that a GT has spent in RC6 or C6.
Reader idle(Context& context, const ReadSource& source) {
  const auto& gts = card_of(context).gts();
  const auto gt = std::ranges::find(gts, static_cast<int>(source.argument), &Gt::index);
  return gt != gts.end() ? file(context, {gt->idle_ms}) : Reader();
}

/// A sensor's temperature, or one of its limits, which are constant: the firmware has them.
enum class SensorPart : std::uint64_t { input, max, critical, emergency };
Reader temperature(Context& context, const ReadSource& source) {
  constexpr const char* kSuffixes[] = {"_input", "_max", "_crit", "_emergency"};
  const std::string name = std::string(source.name) + kSuffixes[source.argument];
  const bool is_input = static_cast<SensorPart>(source.argument) == SensorPart::input;
  return is_input ? file(context, {name}) : constant(context, {name});
}

/// 1 while any reason of the mask is active.
Reader throttle(Context& context, const ReadSource& source) {
  const auto mask = static_cast<ThrottleMask>(source.argument);
  IntelCard& card = card_of(context);
  if ((card.throttle_reasons() & mask) == 0) return {};
  return probed(context, [&card, mask] {
    const Throttle::Reading& reading = card.throttle();
    if (reading.status != ReadStatus::ok) return Sample::miss(reading.status);
    return Sample::of((reading.active & mask) != 0 ? 1 : 0);
  });
}

/// Errors by index in ras::kSeverities and in ras::kErrors.
Reader error_count(Context& context, const ReadSource& source) {
  const std::size_t severity = source.argument >> 8;
  const std::size_t error = source.argument & 0xff;
  IntelCard& card = card_of(context);
  if (!card.has_errors() || !card.errors().values[severity][error]) return {};
  return [&card, severity, error] {
    const ras::Counts& counts = card.errors();
    return counts.status == ReadStatus::ok ? sample_of(counts.values[severity][error])
                                           : Sample::miss(counts.status);
  };
}

/// A number of the card's memory regions.
enum class MemoryPart : std::uint64_t { size, used, free, visible_size, visible_used };
std::optional<double> part_of(const memory::Regions& regions, MemoryPart part) noexcept {
  switch (part) {
    case MemoryPart::size:
      return regions.size;
    case MemoryPart::used:
      return regions.used;
    case MemoryPart::free:
      return regions.size && regions.used ? std::optional(*regions.size - *regions.used) : std::nullopt;
    case MemoryPart::visible_size:
      return regions.visible_size;
    case MemoryPart::visible_used:
      return regions.visible_used;
  }
  return std::nullopt;
}
constexpr std::string_view kRegions = "DRM_*_QUERY_MEM*_REGIONS";
Reader memory_region(Context& context, const ReadSource& source) {
  IntelCard& card = card_of(context);
  if (!card.has_memory()) return {};
  return probed(context, [&card, part = static_cast<MemoryPart>(source.argument)] {
    const memory::Regions& regions = card.memory();
    return regions.status == ReadStatus::ok ? sample_of(part_of(regions, part))
                                            : Sample::miss(regions.status);
  });
}

/// The share of time in which an engine was busy, between the last two readings.
class BusyShare {
 public:
  /// `unsupported` until there are two readings.
  Sample advance(double seconds, Nanoseconds at) noexcept {
    if (!last_at_ || at < *last_at_) {
      last_at_ = at;
      last_ = seconds;
      return share_ = Sample::miss(ReadStatus::unsupported);
    }
    if (at == *last_at_) return share_;
    const double share = (seconds - last_) / to_seconds(at - *last_at_);
    last_at_ = at;
    last_ = seconds;
    return share_ = Sample::of(std::clamp(share, 0.0, 1.0));
  }

 private:
  std::optional<Nanoseconds> last_at_;
  double last_ = 0;
  Sample share_ = Sample::miss(ReadStatus::unsupported);
};

Sample seconds_in(const pmu::EngineTimes& times, std::size_t place) noexcept {
  return times.status == ReadStatus::ok ? sample_of(seconds_of(times, place)) : Sample::miss(times.status);
}

/// Seconds in which an engine was busy, and the share of the time since the last reading. `place`: see
/// pmu::seconds_of(). The events count on through passes that are not observed, and the exported counter does
/// not.
constexpr std::string_view kEngineEvents = "perf_event_open *-busy, engine-active-ticks";
Reader events_busy(Context& context, const ReadSource& source) {
  IntelCard& card = card_of(context);
  if (!card.has_events(source.argument)) return {};
  return CountingReader(Tally(), [&context, &card, place = source.argument](Settled<Tally>& settled) {
    const Sample seconds = seconds_in(card.events(), place);
    if (seconds.status != ReadStatus::ok) return seconds;
    Tally& tally = settled.current();
    if (context.is_after_gap()) tally.restart();
    return tally.add(tally.growth[0].of(seconds.value));
  });
}
Reader events_share(Context& context, const ReadSource& source) {
  IntelCard& card = card_of(context);
  if (!card.has_events(source.argument)) return {};
  return [&card, place = source.argument, share = BusyShare()]() mutable {
    const pmu::EngineTimes& times = card.events();
    const Sample seconds = seconds_in(times, place);
    return seconds.status == ReadStatus::ok ? share.advance(seconds.value, times.at) : seconds;
  };
}
// Busy time of the engines. The events of the driver count all work; the clients in /proc are those that may
// be read, and stand in for the events.

constexpr Traits kEventSeconds{.min = 0, .forgets = true};

/// The classes that i915 and xe have.
constexpr EngineClass kEngines[] = {EngineClass::graphics, EngineClass::compute, EngineClass::copy,
                                    EngineClass::video, EngineClass::video_enhance};

constexpr LabelSet engine_label(EngineClass engine) noexcept {
  return {"engine", kEngineClassNames.of(engine)};
}

// clang-format off
constexpr auto engine_seconds(Source::Bind bind, std::string_view name, const Traits& traits) {
  return each(kEngines, [&](EngineClass engine) {
    return Row{&catalog::engine_busy_seconds, engine_label(engine), {bind, name, engine}, 1, fast, {}, traits};
  });
}
constexpr auto engine_shares(Source::Bind bind, std::string_view name) {
  return each(kEngines, [&](EngineClass engine) {
    return Row{&catalog::engine_utilization, engine_label(engine), {bind, name, engine}, 1, fast, {}, kShare};
  });
}

constexpr auto kDeviceBusyRows = std::to_array<Row>({
    {&catalog::busy_seconds, {}, {events_busy, kEngineEvents, pmu::kBusiest}, 1, Tier::fast, {}, kEventSeconds},
    {&catalog::busy_seconds, {}, {clients_busy, kClientFiles, kBusiestClass}, 1, Tier::fast, {}, kClientSeconds},
    {&catalog::utilization, {}, {events_share, kEngineEvents, pmu::kBusiest}, 1, Tier::fast, Derived{}.with(kUtilizationExtremes), kShare},
    {&catalog::utilization, {}, {clients_share, kClientFiles, kBusiestClass}, 1, Tier::fast, Derived{}.with(kUtilizationExtremes), kShare},
});
// clang-format on

constexpr auto kEngineRows = joined(
    kDeviceBusyRows, engine_seconds(events_busy, kEngineEvents, kEventSeconds),
    engine_shares(events_share, kEngineEvents), engine_seconds(clients_busy, kClientFiles, kClientSeconds),
    engine_shares(clients_share, kClientFiles));

constexpr Traits kCelsius{.min = -50, .max = 250};
constexpr Traits kCelsiusLimit{.min = 1, .max = 250, .zero_is_unknown = true};

/// A sensor of xe by its label (Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon). i915 has one, which
/// it does not label.
struct TemperatureSensor {
  std::string_view sensor, file;
};
constexpr TemperatureSensor kTemperatureSensors[] = {
    {"core", "hwmon/temp{pkg}"},
    {"memory", "hwmon/temp{vram}"},
    {"mctrl", "hwmon/temp{mctrl}"},
    {"pcie", "hwmon/temp{pcie}"},
    {"vram_ch_0", "hwmon/temp{vram_ch_0}"},
    {"vram_ch_1", "hwmon/temp{vram_ch_1}"},
    {"vram_ch_2", "hwmon/temp{vram_ch_2}"},
    {"vram_ch_3", "hwmon/temp{vram_ch_3}"},
    {"vram_ch_4", "hwmon/temp{vram_ch_4}"},
    {"vram_ch_5", "hwmon/temp{vram_ch_5}"},
    {"vram_ch_6", "hwmon/temp{vram_ch_6}"},
    {"vram_ch_7", "hwmon/temp{vram_ch_7}"},
    {"vram_ch_8", "hwmon/temp{vram_ch_8}"},
    {"vram_ch_9", "hwmon/temp{vram_ch_9}"},
    {"vram_ch_10", "hwmon/temp{vram_ch_10}"},
    {"vram_ch_11", "hwmon/temp{vram_ch_11}"},
    {"vram_ch_12", "hwmon/temp{vram_ch_12}"},
    {"vram_ch_13", "hwmon/temp{vram_ch_13}"},
    {"vram_ch_14", "hwmon/temp{vram_ch_14}"},
    {"vram_ch_15", "hwmon/temp{vram_ch_15}"},
};

// clang-format off
/// Temperature, three limits and the margin of each sensor.
consteval auto temperature_rows() {
  std::array<Row, 5 * std::size(kTemperatureSensors)> rows{};
  auto* end = rows.data();
  for (const TemperatureSensor& of : kTemperatureSensors) {
    *end++ = {&catalog::temperature, {"sensor", of.sensor}, {temperature, of.file, SensorPart::input}, kMilli, fast, {}, kCelsius};
    *end++ = {&catalog::temperature_limit, {"sensor", of.sensor, "limit", "max"}, {temperature, of.file, SensorPart::max}, kMilli, slow, {}, kCelsiusLimit};
    *end++ = {&catalog::temperature_limit, {"sensor", of.sensor, "limit", "critical"}, {temperature, of.file, SensorPart::critical}, kMilli, slow, {}, kCelsiusLimit};
    *end++ = {&catalog::temperature_limit, {"sensor", of.sensor, "limit", "emergency"}, {temperature, of.file, SensorPart::emergency}, kMilli, slow, {}, kCelsiusLimit};
    *end++ = {&catalog::temperature_margin, {"sensor", of.sensor}, {margin, of.file}, kMilli, fast};
  }
  return rows;
}
// clang-format on
constexpr auto kTemperatureRows = temperature_rows();

struct Fan {
  std::string_view fan, speed, share;
};
constexpr Fan kFans[] = {{"0", "hwmon/fan1_input", "hwmon/fan1_input / hwmon/fan1_max"},
                         {"1", "hwmon/fan2_input", "hwmon/fan2_input / hwmon/fan2_max"},
                         {"2", "hwmon/fan3_input", "hwmon/fan3_input / hwmon/fan3_max"},
                         {"3", "hwmon/fan4_input", "hwmon/fan4_input / hwmon/fan4_max"}};
constexpr auto kFanSpeedRows = each(kFans, [](const Fan& of) {
  return Row{&catalog::fan_rpm, {"fan", of.fan}, {file, of.speed}, 1, Tier::normal, {}, kPositive};
});
constexpr auto kFanShareRows = each(kFans, [](const Fan& of) {
  return Row{&catalog::fan_speed, {"fan", of.fan}, {quotient, of.share}, 1, Tier::normal, {}, kRatio};
});
constexpr auto kFanRows = joined(kFanSpeedRows, kFanShareRows);

// Error counts of the card's blocks, since the driver was loaded or an administrator cleared them.
constexpr Traits kCount{.min = 0};

constexpr Row ras_row(std::size_t severity, std::size_t error) noexcept {
  const std::string_view name = ras::kSeverities[severity];
  const std::string_view block = ras::kErrors[error].block;
  const Source count = {error_count, "netlink drm-ras", severity << 8 | error};
  if (error == ras::kDeviceMemory) {
    return {&catalog::memory_errors, {"severity", name, "location", block}, count, 1, Tier::slow, {}, kCount};
  }
  return {&catalog::hardware_errors, {"block", block, "severity", name}, count, 1, Tier::slow, {}, kCount};
}

consteval std::array<Row, ras::kSeverityCount * ras::kErrorCount> ras_rows() {
  std::array<Row, ras::kSeverityCount * ras::kErrorCount> rows{};
  auto* end = rows.data();
  for (std::size_t severity = 0; severity < ras::kSeverityCount; ++severity) {
    for (std::size_t error = 0; error < ras::kErrorCount; ++error) *end++ = ras_row(severity, error);
  }
  return rows;
}

// No card exceeds these ranges, so a reading outside must be wrong.
constexpr Traits kWatts{.min = 0, .max = 5000};
constexpr Traits kMeanWatts{.min = 0, .max = 5000, .forgets = true};          // needs two readings
constexpr Traits kWattLimit{.min = 0, .max = 5000, .zero_is_unknown = true};  // 0: the limit is off
constexpr Traits kVolts{.min = 0, .max = 20};                                 // 0: the rail is gated
constexpr Traits kHertz{.min = 0, .max = 20e9};                               // 0: the clock is gated
constexpr Traits kGeneration{.min = 1, .max = 7};
constexpr Traits kLanes{.min = 1, .max = 32};
constexpr Traits kSize{.min = 1};

// clang-format off
constexpr auto kRows = std::to_array<Row>({
    {&catalog::suspended, {}, {asleep, "power/runtime_status"}, 1, fast, {}, kNeverWakes},

    // Each query opens the card's node and closes it.
    {&catalog::memory_size, {"memory", "vram"}, {memory_region, kRegions, MemoryPart::size}, 1, normal, {}, kSize},
    {&catalog::memory_used, {"memory", "vram"}, {memory_region, kRegions, MemoryPart::used}, 1, normal, {}, kPositive},
    {&catalog::memory_free, {"memory", "vram"}, {memory_region, kRegions, MemoryPart::free}, 1, normal, {}, kPositive},
    {&catalog::visible_memory_size, {}, {memory_region, kRegions, MemoryPart::visible_size}, 1, normal, {}, kSize},
    {&catalog::visible_memory_used, {}, {memory_region, kRegions, MemoryPart::visible_used}, 1, normal, {}, kPositive},

    // The card's energy if the firmware counts it, otherwise that of the package. The hardware counts in 32 bits,
    // which wrap after 4 minutes at 1000 W; the drivers extend the count only when it is read (kernel 7.2,
    // xe_hwmon_energy_get), so it is read in every fast pass.
    {&catalog::energy_joules, {}, {nonzero, "hwmon/energy{card}_input"}, kMicro, fast, {}, kPositive},
    {&catalog::energy_joules, {}, {nonzero, "hwmon/energy{pkg}_input"}, kMicro, fast, {}, kPositive},
    {&catalog::rail_energy_joules, {"rail", "card"}, {nonzero, "hwmon/energy{=card}_input"}, kMicro, fast, {}, kPositive},
    {&catalog::rail_energy_joules, {"rail", "package"}, {nonzero, "hwmon/energy{=pkg}_input"}, kMicro, fast, {}, kPositive},
    {&catalog::power, {}, {file, "hwmon/power{card}_input"}, kMicro, fast, Derived{}.with(kPowerExtremes), kWatts},
    {&catalog::power, {}, {mean_rate, "hwmon/energy{card}_input"}, kMicro, fast, Derived{}.with(kPowerExtremes), kMeanWatts},
    {&catalog::power, {}, {mean_rate, "hwmon/energy{pkg}_input"}, kMicro, fast, Derived{}.with(kPowerExtremes), kMeanWatts},
    {&catalog::power_rail, {"rail", "card"}, {mean_rate, "hwmon/energy{=card}_input"}, kMicro, fast, {}, kMeanWatts},
    {&catalog::power_rail, {"rail", "package"}, {mean_rate, "hwmon/energy{=pkg}_input"}, kMicro, fast, {}, kMeanWatts},

    // PL1 (_max) limits the mean over some seconds, PL2 (_cap) over some milliseconds; I1 (_crit) is the highest
    // that the card ever draws.
    {&catalog::power_limit, {"limit", "enforced"}, {nonzero, "hwmon/power{card}_max"}, kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "enforced"}, {nonzero, "hwmon/power{pkg}_max"}, kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "enforced"}, {nonzero, "hwmon/power{card}_cap"}, kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "enforced"}, {nonzero, "hwmon/power{pkg}_cap"}, kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "default"}, {nonzero, "hwmon/power{card}_rated_max"}, kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "default"}, {nonzero, "hwmon/power{pkg}_rated_max"}, kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "max"}, {nonzero, "hwmon/power{card}_crit"}, kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "max"}, {nonzero, "hwmon/power{pkg}_crit"}, kMicro, slow, {}, kWattLimit},
    {&catalog::voltage, {"rail", "gfx"}, {file, "hwmon/in{pkg}_input"}, kMilli, fast, {}, kVolts},

    {&catalog::clock, {"clock", "graphics"}, {highest<&Gt::act_freq>, "gt*/act_freq", GtKind::graphics}, kMega, fast, {}, kHertz},
    {&catalog::clock, {"clock", "video"}, {highest<&Gt::act_freq>, "gt*/act_freq", GtKind::media}, kMega, fast, {}, kHertz},
    {&catalog::clock_max, {"clock", "graphics"}, {highest<&Gt::max_freq>, "gt*/rp0_freq", GtKind::graphics}, kMega, slow, {}, kHertz},
    {&catalog::clock_max, {"clock", "video"}, {highest<&Gt::max_freq>, "gt*/rp0_freq", GtKind::media}, kMega, slow, {}, kHertz},

    {&catalog::pcie_link_generation, {}, {generation, "slot/current_link_speed"}, 1, slow, {}, kGeneration},
    {&catalog::pcie_link_lanes, {}, {file, "slot/current_link_width"}, 1, slow, {}, kLanes},
    {&catalog::pcie_link_max_generation, {}, {generation, "slot/max_link_speed"}, 1, slow, {}, kGeneration},
    {&catalog::pcie_link_max_lanes, {}, {file, "slot/max_link_width"}, 1, slow, {}, kLanes},
});
// clang-format on

// The most GTs of any chip: two on each of four tiles.
constexpr std::string_view kGts[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
constexpr auto kIdleRows = each_place(kGts, [](std::size_t gt, std::string_view label) {
  return Row{&catalog::gt_idle_seconds,
             {"gt", label},
             {idle, "gt*/idle_residency_ms", gt},
             kMilli,
             normal,
             {},
             kPositive};
});

constexpr auto kCauseRows = each(kThrottleCauses, [](std::string_view cause) {
  const Source source = {throttle, "gt*/throttle", mask_of_cause(cause)};
  return Row{&catalog::throttled, {"cause", cause}, source, 1, fast, state(catalog::throttle_seconds)};
});
constexpr auto kReasonRows =
    each_place(kThrottleReasons, [](std::size_t place, const ThrottleReason& reason) {
      const LabelSet labels("cause", reason.cause, "reason", reason.reason);
      const Source source = {throttle, "gt*/throttle", ThrottleMask{1} << place};
      return Row{&catalog::throttle_reason_active,       labels, source, 1, fast,
                 state(catalog::throttle_reason_seconds)};
    });

constexpr auto kTable = joined(kRows, kEngineRows, kTemperatureRows, kFanRows, kCauseRows, kReasonRows,
                               kIdleRows, aer_rows(), ras_rows());
static_assert(valid_table(kTable));

// The sensors of i915 (Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon), which have no labels; xe
// labels all. One board has energy1, temp1 and in0 under i915, and energy2, temp2 and in1 under xe.
constexpr UnlabelledSensor kUnlabelled[] = {
    {"temp", "pkg", 1}, {"in", "pkg", 0}, {"energy", "card", 1}, {"power", "card", 1}};
constexpr HwmonChip kHwmon[] = {{"xe", {}}, {"i915", kUnlabelled}};

// A scan of xe wakes its card, or is a use of it (kernel 7.2, xe_drm_client.c, show_run_ticks).
constexpr Kind kind_of(Scans scans) {
  return {.rows = kTable,
          .sleep = Sleep::allowed,
          .scans = scans,
          .paths = {kHwmon, [](const pci::Function& function, bool) { return slot_port(function); }}};
}

}  // namespace

std::unique_ptr<Device> intel_device(const Environment& environment, std::string_view driver) {
  const Scans scans = driver == "xe" ? Scans::while_read : Scans::while_awake;
  return make_device(kind_of(scans), environment.roots, std::make_unique<IntelCard>(environment));
}

std::span<const RowDoc> intel_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<Context>({kTable});
  return docs;
}

}  // namespace gpumeter::intel
