#include <algorithm>
#include <array>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/drm/collector.hpp"
#include "collectors/files/readers.hpp"
#include "collectors/files/text.hpp"

namespace gpumeter::drm_devices {
namespace {

using enum Tier;
using namespace files;
using gpumeter::Traits;

constexpr std::uint64_t kPerSecond = 1'000'000'000;  // ns
constexpr double kMilliMicro = 1e-6;                 // mV times mA
constexpr double kTenthsOfPercent = 1e-3;
constexpr double kFlit = 32;  // bytes, tt-kmd's pcie_perf_counters
constexpr std::uint64_t kOncePerSecond = 1000;

// No device exceeds these ranges, so a reading outside must be wrong.
constexpr Traits kCelsius{.min = -50, .max = 250};
constexpr Traits kLimit{.min = 1, .max = 250, .zero_is_unknown = true};
constexpr Traits kWatts{.min = 0, .max = 5000};
constexpr Traits kVolts{.min = 0, .max = 20};
constexpr Traits kHertz{.min = 0, .max = 20e9, .wakes = false};
// Served from the driver's own memory, in any state of the device.
constexpr Traits kSoft{.min = 0, .wakes = false};

constexpr Derived kUtilization = Derived{}.with(kUtilizationExtremes);
constexpr Derived kPower = instantaneous(catalog::energy_joules).with(kPowerExtremes);
constexpr Derived kAveragedBusy = averaged(catalog::busy_seconds).with(kUtilizationExtremes);

// clang-format off
// Parts that several devices share.

constexpr auto kHwmon = std::to_array<Row>({
    {&catalog::temperature, {"sensor", "core"}, {file, "hwmon/temp1_input"}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "max"}, {file, "hwmon/temp1_max"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "critical"}, {file, "hwmon/temp1_crit"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "emergency"}, {file, "hwmon/temp1_emergency"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_margin, {"sensor", "core"}, {margin, "hwmon/temp1", Limits::all}, kMilli, fast},
    {&catalog::power, {}, {file, "hwmon/power1_average"}, kMicro, fast, averaged(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power, {}, {file, "hwmon/power1_input"}, kMicro, fast, kPower, kWatts},
    {&catalog::power_limit, {"limit", "max"}, {file, "hwmon/power1_cap_max"}, kMicro, slow, {}, kWatts},
    {&catalog::fan_rpm, {"fan", "0"}, {file, "hwmon/fan1_input"}, 1, normal, {}, kPositive},
});

// devfreq (Documentation/ABI/testing/sysfs-class-devfreq): Hz, from the driver's memory.
constexpr auto kDevfreq = std::to_array<Row>({
    {&catalog::clock, {"clock", "graphics"}, {file, "devfreq/*/cur_freq"}, 1, fast, {}, kHertz},
    {&catalog::clock_max, {"clock", "graphics"}, {file, "devfreq/*/max_freq"}, 1, slow, {}, kHertz},
});

// The kernel shuts the machine down at the critical trip point of a zone.
constexpr Row zone_limit(std::string_view sensor, std::string_view trip) {
  return {&catalog::temperature_limit, {"sensor", sensor, "limit", "critical"}, {file, trip}, kMilli, slow, {}, kLimit};
}

// Thermal zones are the device tree's; a zone of a GPU has "gpu" in front (Qualcomm, Rockchip, Tegra).
constexpr auto kZone = std::to_array<Row>({
    {&catalog::temperature, {"sensor", "core"}, {file, "thermal{gpu-thermal}/temp"}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, {file, "thermal{gpu*}/temp"}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, {file, "thermal{GPU*}/temp"}, kMilli, fast, {}, kCelsius},
    zone_limit("core", "thermal{gpu-thermal}/trip{critical}"),
    zone_limit("core", "thermal{gpu*}/trip{critical}"),
    zone_limit("core", "thermal{GPU*}/trip{critical}"),
    {&catalog::temperature_margin, {"sensor", "core"}, {margin, "thermal{gpu-thermal}"}, kMilli, fast},
    {&catalog::temperature_margin, {"sensor", "core"}, {margin, "thermal{gpu*}"}, kMilli, fast},
    {&catalog::temperature_margin, {"sensor", "core"}, {margin, "thermal{GPU*}"}, kMilli, fast},
});

constexpr auto kHostMemory = std::to_array<Row>({
    {&catalog::memory_size, {"memory", "unified"}, {host_memory, kHostMemoryFile, HostPart::size}, 1, normal, {}, kSoft},
    {&catalog::memory_used, {"memory", "unified"}, {host_memory, kHostMemoryFile, HostPart::used}, 1, normal, {}, kSoft},
    {&catalog::memory_free, {"memory", "unified"}, {host_memory, kHostMemoryFile, HostPart::free}, 1, normal, {}, kSoft},
});

constexpr Row client_engine(EngineClass which) {
  return {&catalog::engine_busy_seconds, {"engine", kEngineClassNames.of(which)}, {clients_busy, kClientFiles, which}, 1, normal, {}, kClientSeconds};
}
constexpr auto kClients = std::to_array<Row>({
    {&catalog::busy_seconds, {}, {clients_busy, kClientFiles, kBusiestClass}, 1, normal, {}, kClientSeconds},
    {&catalog::utilization, {}, {clients_share, kClientFiles, kBusiestClass}, 1, normal, kUtilization, kClientRatio},
    client_engine(EngineClass::graphics),
    client_engine(EngineClass::compute),
    client_engine(EngineClass::copy),
    client_engine(EngineClass::video),
    client_engine(EngineClass::decode),
    client_engine(EngineClass::encode),
    client_engine(EngineClass::jpeg),
    client_engine(EngineClass::video_enhance),
});

// nouveau (drivers/gpu/drm/nouveau/nouveau_hwmon.c): pwm1 is a percentage. No utilisation, no memory in use.
constexpr auto kNouveau = std::to_array<Row>({
    {&catalog::suspended, {}, {asleep, "power/runtime_status"}, 1, fast, {}, kNeverWakes},
    {&catalog::fan_speed, {"fan", "0"}, {file, "hwmon/pwm1"}, kPercent, normal, {}, kRatio},
    {&catalog::voltage, {"rail", "gfx"}, {file, "hwmon/in0_input"}, kMilli, fast, {}, kVolts},
});

// Broadcom V3D (drivers/gpu/drm/v3d/v3d_sysfs.c): ns of run time by queue. bin and cache_clean are no class of
// engine that other devices have, so they keep the driver's names.
constexpr Row queue(std::string_view engine, std::string_view cell) {
  return {&catalog::engine_busy_seconds, {"engine", engine}, {in_table, cell, kPerSecond}, 1, fast, {}, kSoft};
}
constexpr auto kV3d = std::to_array<Row>({
    {&catalog::busy_seconds, {}, {busiest_row, "gpu_stats: timestamp.runtime", kPerSecond}, 1, fast, {}, kSoft},
    {&catalog::utilization, {}, {busiest_row_share, "gpu_stats: timestamp.runtime"}, 1, fast, kUtilization, kShare},
    queue("graphics", "gpu_stats: render.runtime"),
    queue("compute", "gpu_stats: csd.runtime"),
    queue("copy", "gpu_stats: tfu.runtime"),
    queue("bin", "gpu_stats: bin.runtime"),
    queue("cache_clean", "gpu_stats: cache_clean.runtime"),
    queue("cpu", "gpu_stats: cpu.runtime"),
    {&catalog::temperature, {"sensor", "soc"}, {file, "thermal{cpu-thermal}/temp"}, kMilli, fast, {}, kCelsius},
    zone_limit("soc", "thermal{cpu-thermal}/trip{critical}"),
    {&catalog::temperature_margin, {"sensor", "soc"}, {margin, "thermal{cpu-thermal}"}, kMilli, fast},
});

// Intel NPU (drivers/accel/ivpu/ivpu_sysfs.c). The driver asks for at most one read of the busy time a second.
constexpr auto kIntelNpu = std::to_array<Row>({
    {&catalog::busy_seconds, {}, {file, "npu_busy_time_us", kOncePerSecond}, kMicro, fast, {}, kSoft},
    {&catalog::utilization, {}, {busiest_share, "npu_busy_time_us", kOncePerSecond}, 1, fast, kUtilization, kShare},
    {&catalog::memory_used, {"memory", "gtt"}, {file, "npu_memory_utilization"}, 1, normal, {}, kSoft},
    {&catalog::clock, {"clock", "graphics"}, {file, "freq/current_freq"}, kMega, fast, {}, kHertz},
    {&catalog::clock, {"clock", "graphics"}, {file, "npu_current_frequency_mhz"}, kMega, fast, {}, kHertz},
    {&catalog::clock_max, {"clock", "graphics"}, {file, "freq/hw_max_freq"}, kMega, slow, {}, kHertz},
    {&catalog::clock_max, {"clock", "graphics"}, {file, "npu_max_frequency_mhz"}, kMega, slow, {}, kHertz},
});

// Tenstorrent (tt-kmd). Its node is not opened, because open descriptors take part in the power state.
constexpr auto kTenstorrent = std::to_array<Row>({
    {&catalog::temperature, {"sensor", "core"}, {file, "hwmon/temp{asic_temp}_input"}, kMilli, fast, {}, kCelsius},
    {&catalog::power, {}, {file, "hwmon/power{power}_input"}, kMicro, fast, kPower, kWatts},
    {&catalog::voltage, {"rail", "core"}, {file, "hwmon/in{vcore}_input"}, kMilli, fast, {}, kVolts},
    {&catalog::fan_rpm, {"fan", "0"}, {file, "hwmon/fan{fan_rpm}_input"}, 1, normal, {}, kPositive},
    {&catalog::clock, {"clock", "graphics"}, {number, "**/tt_aiclk"}, kMega, fast, {}, kHertz},
    {&catalog::clock, {"clock", "axi"}, {number, "**/tt_axiclk"}, kMega, normal, {}, kHertz},
    {&catalog::clock, {"clock", "arc"}, {number, "**/tt_arcclk"}, kMega, normal, {}, kHertz},
    {&catalog::events, {"event", "thermal_trip"}, {number, "**/tt_therm_trip_count"}, 1, slow, {}, kPositive},
    {&catalog::pcie_received_bytes, {}, {wrapping_sum, "**/pcie_perf_counters/*_received*"}, kFlit, fast, {}, kPositive},
    {&catalog::pcie_transmitted_bytes, {}, {wrapping_sum, "**/pcie_perf_counters/*_sent*"}, kFlit, fast, {}, kPositive},
});

// Qualcomm Cloud AI 100 (Documentation/ABI/testing/sysfs-driver-qaic).
constexpr auto kQaic = std::to_array<Row>({
    {&catalog::hardware_errors, {"block", "device", "severity", "corrected"}, {file, "ce_count"}, 1, slow, {}, kPositive},
    {&catalog::hardware_errors, {"block", "device", "severity", "uncorrected"}, {file, "ue_count"}, 1, slow, {}, kPositive},
    {&catalog::hardware_errors, {"block", "device", "severity", "nonfatal"}, {file, "ue_nonfatal_count"}, 1, slow, {}, kPositive},
});

// Jetson with nvgpu: `load` is the mean over devfreq's window in tenths of a percent. The rails of the module's
// power monitor (INA3221) are those of the whole module, of which the GPU has a rail or shares one.
constexpr std::string_view kEachRail = "board{ina3221}/in{*}_input";
constexpr auto kTegra = std::to_array<Row>({
    {&catalog::utilization, {}, {number, "load"}, kTenthsOfPercent, fast, kAveragedBusy, kRatio},
    {&catalog::power, {}, {rail, "board{ina3221}/in{VDD_IN}_input"}, kMilliMicro, fast, kPower, kWatts},
    {&catalog::power, {}, {rail, "board{ina3221}/in{VIN}_input"}, kMilliMicro, fast, kPower, kWatts},
    {&catalog::power, {}, {rail, "board{ina3221}/in{VDD_GPU_SOC}_input"}, kMilliMicro, fast, kPower, kWatts},
    {&catalog::power, {}, {rail, "board{ina3221}/in{VDD_GPU}_input"}, kMilliMicro, fast, kPower, kWatts},
    {&catalog::power_rail, {"rail", "*"}, {rail, kEachRail}, kMilliMicro, fast, instantaneous(catalog::rail_energy_joules), kWatts},
    {&catalog::voltage, {"rail", "*"}, {rail_voltage, kEachRail}, kMilli, fast, {}, kVolts},
    {&catalog::temperature, {"sensor", "tj"}, {file, "thermal{tj-thermal}/temp"}, kMilli, fast, {}, kCelsius},
    zone_limit("tj", "thermal{tj-thermal}/trip{critical}"),
    {&catalog::temperature_margin, {"sensor", "tj"}, {margin, "thermal{tj-thermal}"}, kMilli, fast},
});
// clang-format on

constexpr auto kNouveauRows = joined(kNouveau, kHwmon, kLinkRows);
constexpr auto kV3dRows = joined(kV3d, kClients, kHostMemory);  // clients: kernels before gpu_stats
constexpr auto kArmRows = joined(kDevfreq, kZone, kClients, kHostMemory);
constexpr auto kNpuRows = kIntelNpu;
constexpr auto kXdnaRows = joined(kClients, kHwmon);
constexpr auto kTenstorrentRows = joined(kTenstorrent, kHwmon, kLinkRows);
constexpr auto kQaicRows = joined(kQaic, kLinkRows);
constexpr auto kTegraRows = joined(kTegra, kDevfreq, kZone, kHostMemory);
constexpr auto kAnyRows = joined(kDevfreq, kHwmon, kClients);
static_assert(valid_table(kNouveauRows) && valid_table(kV3dRows) && valid_table(kArmRows) &&
              valid_table(kNpuRows) && valid_table(kXdnaRows) && valid_table(kTenstorrentRows) &&
              valid_table(kQaicRows) && valid_table(kTegraRows) && valid_table(kAnyRows));

constexpr Kind with_clients(std::span<const Row> rows) { return {.rows = rows, .scans = Scans::always}; }

// The first pattern that matches counts, so the one for any driver is the last.
constexpr auto kKinds = std::to_array<DrmKind>({
    {"nouveau", "nvidia", "NVIDIA", "", "", "", {.rows = kNouveauRows, .sleep = Sleep::spared}},
    {"v3d", "broadcom", "VideoCore", "", "", "", with_clients(kV3dRows)},
    {"panfrost", "arm", "Mali", "", "", "", with_clients(kArmRows)},
    {"panthor", "arm", "Mali", "", "", "", with_clients(kArmRows)},
    {"lima", "arm", "Mali", "", "", "", {.rows = kArmRows}},
    {"adreno",
     "qualcomm",
     "Adreno",
     "",
     "",
     "",
     {.rows = kArmRows, .scans = Scans::always, .client_driver = "msm*"}},
    {"etnaviv", "vivante", "Vivante", "", "", "", with_clients(kArmRows)},
    {"asahi", "apple", "Apple", "", "", "", with_clients(kAnyRows)},
    {"gk20a", "nvidia", "Tegra", "", "", "", {.rows = kTegraRows}, true},
    {"intel_vpu", "intel", "Intel NPU", "", "", "", with_clients(kNpuRows)},
    {"amdxdna", "amd", "AMD XDNA", "vbnv", "", "fw_version", with_clients(kXdnaRows)},
    {"tenstorrent",
     "tenstorrent",
     "Tenstorrent",
     "**/tt_card_type",
     "**/tt_serial",
     "**/tt_fw_bundle_ver",
     {.rows = kTenstorrentRows}},
    {"qaic", "qualcomm", "Cloud AI", "", "", "", {.rows = kQaicRows}},
    {"*", "other", "", "", "", "", with_clients(kAnyRows)},
});

// Drivers that other collectors read, and those of displays and virtual machines without a GPU of their own
// that have a render node nevertheless.
constexpr std::string_view kNotOurs[] = {"",           "nvidia", "nvidia-drm", "amdgpu", "radeon",
                                         "i915",       "xe",     "habanalabs", "vgem",   "vkms",
                                         "virtio_gpu", "vmwgfx", "virtio-pci", "msm*",   "hyperv_drm"};

}  // namespace

std::span<const DrmKind> kinds() noexcept { return kKinds; }

const DrmKind* kind_of(std::string_view driver, bool renders) noexcept {
  for (const std::string_view other : kNotOurs) {
    if (matches(other, driver)) return nullptr;
  }
  for (const DrmKind& kind : kKinds) {
    if (matches(kind.driver, driver)) return kind.driver == "*" && !renders ? nullptr : &kind;
  }
  return nullptr;
}

std::span<const RowDoc> drm_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<Context>(
      {kTegraRows, kNouveauRows, kV3dRows, kArmRows, kNpuRows, kTenstorrentRows, kQaicRows});
  return docs;
}

}  // namespace gpumeter::drm_devices
