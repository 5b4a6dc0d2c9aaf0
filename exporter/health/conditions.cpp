#include "exporter/health/conditions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/api/self_catalog.hpp"

namespace gpumeter::health {

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using enum Severity;

// A failed GPU stays failed for an hour after the event, or until its driver was released for a reset.
constexpr std::chrono::seconds kKeepFailed = hours(1);
constexpr std::chrono::seconds kKeepDegraded = minutes(10);

Condition condition_of(const events::Xid& xid, const std::string& reason, const std::string& text) {
  const std::chrono::seconds keep = xid.severity == failed ? kKeepFailed : kKeepDegraded;
  const Term term{{&catalog::xid_errors, {"xid", xid.code}}, Compare::above, 0, Over::event, keep, {}, true};
  return {reason, xid.severity, xid.action, "GpuXid", text, std::chrono::seconds(0), {term}};
}

constexpr Term above(Reading reading, double threshold) { return {reading, Compare::above, threshold}; }
constexpr Term below(Reading reading, double threshold) { return {reading, Compare::below, threshold}; }
constexpr Term over(Term term, Over over, seconds window) {
  term.over = over;
  term.window = window;
  return term;
}
constexpr Term times(Term term, Reading of) {
  term.of = of;
  return term;
}
/// Events for as long as they are news. Some drivers count them since they were loaded (Gaudi, Trainium), so
/// the first count is no news.
constexpr Term event(const MetricDescriptor& family, LabelSet labels, seconds keep) {
  return {{&family, labels}, Compare::above, 0, Over::event, keep};
}

/// An event of the kernel's log, which has a series once the daemon has counted one.
constexpr Term of_log(LabelSet labels, seconds keep) {
  Term term = event(catalog::events, labels, keep);
  term.from_zero = true;
  return term;
}

/// Errors that count until the driver is closed for a reset. gpumeter's counter goes on where the driver's
/// starts again, so the level alone would stay for ever.
constexpr Term since_opened(Reading reading) {
  return {reading, Compare::above, 0, Over::event, kUntilRelease, {}, true};
}

constexpr Reading kUp{&catalog::up};
constexpr Reading kReadErrors{&self_catalog::read_errors};
constexpr Reading kLanes{&catalog::pcie_link_lanes};
constexpr Reading kGeneration{&catalog::pcie_link_generation};
constexpr Reading kLinksUp{&catalog::interconnect_links_up};
constexpr Reading kLinkSpeed{&catalog::interconnect_link_speed, {}, Reduce::lowest};
constexpr Reading kClock{&catalog::clock, {"clock", "graphics"}};
constexpr Reading kThrottled{&catalog::throttled};
constexpr Reading kCore{&catalog::temperature, {"sensor", "core"}, Reduce::highest};

/// A card may have fewer links than its chip by design (12 of 18 on an H100 NVL), so the card itself and its
/// equals say what is usual.
constexpr Term below_usual(Reading reading) {
  return {reading, Compare::below_usual, 0, Over::now, kUntilRelease};
}
/// Some link was up: a card without a bridge has all of them down for ever, which is no fault.
constexpr Term was_up(Reading reading) { return over(above(reading, 0), Over::highest, kUntilRelease); }

constexpr Reading of_state(const MetricDescriptor& family, std::string_view label, std::string_view state) {
  return {&family, {label, state}};
}
constexpr Reading of_severity(const MetricDescriptor& family, std::string_view severity) {
  return {&family, {"severity", severity}};
}
constexpr Reading link_errors(std::string_view error) {
  return {&catalog::interconnect_errors, {"error", error}};
}
/// The links to the CPU are not judged.
constexpr Reading of_nvlink(std::string_view error) {
  return {&catalog::link_errors, {"kind", "nvlink", "error", error}};
}
constexpr Reading bit_errors(std::string_view error) {
  return {&catalog::link_bit_error_ratio, {"kind", "nvlink", "error", error}};
}
constexpr Term reports(std::string_view condition) {
  return above(of_state(catalog::fabric_condition, "condition", condition), 0);
}
constexpr Term kNotHealthy = below(of_state(catalog::fabric_health, "state", "healthy"), 1);
/// A node without a partition is not assigned yet.
constexpr Term kHasPartition =
    below({&catalog::fabric_condition, {"condition", "no_partition"}, Reduce::sum, {}, 0}, 1);

/// A sleeping card has gpu_up 0 on some drivers and is not lost.
constexpr Term kAwake = below({&catalog::suspended, {}, Reduce::highest, {}, 0}, 1);
/// As in the alerts and dashboards: a mean of 5 minutes bridges the time between two batches.
constexpr Term kBusy = over(above({&catalog::utilization}, 0.5), Over::mean, minutes(5));
/// Cards that stop their fans when idle start them at 50 to 60 degrees.
constexpr Term kHot = above(kCore, 70);
/// A clock limited by a cause is reported by that cause.
constexpr Term kNotThrottled = over(below(kThrottled, 0.05), Over::mean, minutes(5));

/// A quarter of a minute: a short peak is no fault, and a cause that holds is reported within half a minute.
constexpr Term throttled(Reading reading) { return over(above(reading, 0.25), Over::mean, minutes(1)); }
constexpr Reading cause(std::string_view name) { return {&catalog::throttled, {"cause", name}}; }

/// A link in use below its maximum. A link idles at one lane or at the lowest speed to save power, hence the
/// highest reading of 5 minutes and the busy GPU.
constexpr Term never_at(Reading current, const MetricDescriptor& max) {
  return over(times(below(current, 1), {&max}), Over::highest, minutes(5));
}

// clang-format off
constexpr Condition kTable[] = {
    // A hang or a loss shows in gpu_up at once; the hold time bridges the second in which a release is reported.
    {"device_lost", failed, Action::reboot, "GpuLost", "the GPU is gone, or its driver does not answer", seconds(5), {below(kUp, 1), kAwake}},
    // The driver may go on to answer with its last values.
    {"device_lost", failed, Action::reboot, "GpuLost", "the kernel reports that the GPU no longer answers on the PCI bus", seconds(0), {of_log({"event", "off_bus"}, kKeepFailed)}},
    // gpu_up is 0 if no read of a pass succeeds. A card that is gone is not read and has no errors.
    {"reads_failing", failed, Action::reset, "GpuReadsFailing", "every read of the GPU fails: {value} errors within 30 s", seconds(5), {over(above(kReadErrors, 5), Over::rise, seconds(30)), below(kUp, 1)}},

    // The driver's own request: NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, driver 570 and later. NVIDIA, "GPU memory error
    // management", recovery action flag: drain peer-to-peer traffic first, then ask again. The actions of newer drivers are resets and
    // reboots of other kinds, such as that of one PCI function.
    {"recovery_action", failed, Action::reset, "GpuRecoveryAction", "the driver requests a reset of the GPU", seconds(0), {above(of_state(catalog::recovery_action, "action", "reset"), 0)}},
    {"recovery_action", failed, Action::reboot, "GpuRecoveryAction", "the driver requests a reboot of the machine", seconds(0), {above(of_state(catalog::recovery_action, "action", "reboot"), 0)}},
    {"recovery_action", failed, Action::drain, "GpuRecoveryAction", "the driver requests that all traffic between GPUs ends", seconds(0), {above(of_state(catalog::recovery_action, "action", "drain_p2p"), 0)}},
    {"recovery_action", failed, Action::reset, "GpuRecoveryAction", "the driver requests that the jobs end, then a reset of the GPU", seconds(0), {above(of_state(catalog::recovery_action, "action", "drain_and_reset"), 0)}},
    {"recovery_action", failed, Action::drain, "GpuRecoveryAction", "the driver requests that the IMEX domain is recovered", seconds(0), {above(of_state(catalog::recovery_action, "action", "recover_imex"), 0)}},
    {"recovery_action", failed, Action::reset, "GpuRecoveryAction", "the driver requests a reset of the GPU through its PCIe bus", seconds(0), {above(of_state(catalog::recovery_action, "action", "bus_reset"), 0)}},
    {"recovery_action", failed, Action::reboot, "GpuRecoveryAction", "the driver requests a reboot of the system", seconds(0), {above(of_state(catalog::recovery_action, "action", "system_reboot"), 0)}},
    {"recovery_action", failed, Action::reboot, "GpuRecoveryAction", "the driver requests an action that this version does not know; a reboot includes every reset", seconds(0), {above(of_state(catalog::recovery_action, "action", "other"), 0)}},
    // Drivers that reset the GPU themselves give it up if that fails. Nothing ends the event but a reset that succeeds.
    {"recovery_action", failed, Action::reboot, "GpuRecoveryAction", "the driver could not reset the GPU", seconds(0), {of_log({"event", "reset_failed"}, kKeepFailed)}},
    {"recovery_action", failed, Action::reset, "GpuRecoveryAction", "the GPU hangs, and its driver waits for a reset", seconds(0), {of_log({"event", "wedged"}, kKeepFailed)}},

    // Errors from before the daemon's start count. Errors over the card's lifetime are another family and judge nothing.
    {"memory_errors_uncorrected", failed, Action::reset, "GpuMemoryErrorsUncorrected", "{value} uncorrected memory errors since the driver was loaded", seconds(0), {since_opened(of_severity(catalog::memory_errors, "uncorrected"))}},
    // No vendor publishes a limit. Each error costs nothing; a hundred an hour means a cell that fails.
    {"memory_errors_corrected", degraded, Action::none, "GpuMemoryErrorsCorrected", "{value} corrected memory errors within an hour", seconds(0), {over(above(of_severity(catalog::memory_errors, "corrected"), 100), Over::rise, hours(1))}},
    // NVIDIA, "GPU memory error management": a remapping failure is a criterion for RMA; a pending one waits for a reset.
    {"row_remap_failed", failed, Action::replace, "GpuRowRemapFailed", "a memory row could not be remapped: no spare rows are left", seconds(0), {above({&catalog::row_remap_failed}, 0)}},
    {"row_remap_pending", degraded, Action::reset, "GpuRowRemapPending", "a memory row waits for a reset to be remapped", seconds(0), {above({&catalog::row_remap_pending}, 0)}},
    // nvml.h, nvmlDeviceGetUnrepairableMemoryFlag_v1: the memory has errors that no spare row or channel can repair.
    {"memory_unrepairable", failed, Action::replace, "GpuMemoryUnrepairable", "the memory has errors that cannot be repaired", seconds(0), {above({&catalog::memory_unrepairable}, 0)}},
    // AWS, "Triage of NVIDIA GPU errors" (XID 172): replace the GPU if its SRAM errors exceed the threshold.
    {"memory_unrepairable", failed, Action::replace, "GpuMemoryUnrepairable", "the uncorrected errors of the SRAM exceed the driver's threshold", seconds(0), {above({&catalog::sram_threshold_exceeded}, 0)}},
    {"row_remap_pending", degraded, Action::reset, "GpuRowRemapPending", "a memory bank waits for a reset to be remapped", seconds(0), {above(of_state(catalog::remapped_banks, "state", "pending"), 0)}},
    // nvml.h, nvmlDeviceGetRepairStatus: a memory channel or a TPC is repaired with spare hardware at the next reset.
    {"repair_pending", degraded, Action::reset, "GpuRepairPending", "a part of the GPU waits for a reset to be repaired", seconds(0), {above({&catalog::repair_pending}, 0)}},
    // NVIDIA, "Dynamic page retirement": cards before Ampere. Pages that are retired already are no fault.
    {"retired_pages_pending", degraded, Action::reset, "GpuRetiredPagesPending", "a memory page waits for a reset to be retired", seconds(0), {above({&catalog::retired_pages_pending}, 0)}},

    // Links train for a minute or more after a boot, hence two readings (NVIDIA/NVSentinel issue 1701).
    {"links_down", failed, Action::reset, "GpuLinksDown", "{link} is down", minutes(2), {below({&catalog::link_up}, 1), was_up({&catalog::link_up})}},
    {"links_down", failed, Action::reset, "GpuLinksDown", "{value} of {of} links to other GPUs are up", minutes(2), {below_usual(kLinksUp), was_up(kLinksUp)}},
    {"link_slow", degraded, Action::drain, "GpuLinkErrors", "{link} runs at {value} of {of} bytes per second", minutes(2), {times(below({&catalog::link_speed}, 1), kLinkSpeed), above({&catalog::link_up}, 0)}},
    {"link_slow", degraded, Action::drain, "GpuLinkErrors", "the links to other GPUs run at {value} of {of} bytes per second", minutes(2), {below_usual(kLinkSpeed)}},
    // NVIDIA's XID catalogue, XID 149: report a link that goes down more than once a day. Of 5760 links of a machine room
    // only the one that failed five days later had ever recovered (marin-community/marin issue 9086).
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{link}: {value} failed recoveries in 24 h", seconds(0), {over(above(of_nvlink("recovery_failed"), 0), Over::rise, hours(24))}},
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{link}: {value} recoveries in 24 h", seconds(0), {over(above(of_nvlink("recovery"), 1), Over::rise, hours(24))}},
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{link}: {value} replays in 5 minutes", seconds(0), {over(above(of_nvlink("replay"), 0), Over::rise, minutes(5))}},
    // GoogleCloudPlatform/cluster-toolkit, pull request 5942: limits of both ratios.
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{link} has a bit error ratio of {value} after forward error correction", minutes(5), {above(bit_errors("effective"), 1e-9)}},
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{link} has a bit error ratio of {value} after all corrections", minutes(5), {above(bit_errors("symbol"), 1e-25)}},
    // Of links without series of their own. DCGM's health check fails a link at one replay or recovery a minute; errors of
    // the checksum matter at 100 a second.
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{value} replays on the links to other GPUs within 5 minutes", seconds(0), {over(above(link_errors("replay"), 0), Over::rise, minutes(5))}},
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{value} recoveries of links to other GPUs in 24 h", seconds(0), {over(above(link_errors("recovery"), 1), Over::rise, hours(24))}},
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{value} failed recoveries of links to other GPUs in 24 h", seconds(0), {over(above(link_errors("recovery_failed"), 0), Over::rise, hours(24))}},
    {"link_errors", degraded, Action::drain, "GpuLinkErrors", "{value} errors on the links to other GPUs within 5 minutes", seconds(0), {over(above({&catalog::interconnect_errors}, 100 * 300), Over::rise, minutes(5))}},
    // Without the fabric, CUDA does not start on machines with NVSwitch. Registration takes seconds to minutes at boot.
    {"fabric_failed", failed, Action::reboot, "GpuFabricFailed", "the registration with the fabric manager has failed", seconds(0), {above(of_state(catalog::fabric_state, "state", "failed"), 0)}},
    {"fabric_failed", failed, Action::reboot, "GpuFabricFailed", "the registration with the fabric manager has not ended for 10 minutes", minutes(10), {above(of_state(catalog::fabric_state, "state", "in_progress"), 0)}},
    // The bit that says why comes first. A driver that reports a healthy fabric has the last word.
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric has a route that is not healthy", seconds(0), {reports("route_unhealthy"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric recovers a route", seconds(0), {reports("route_recovery"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric recovers from an access that timed out", seconds(0), {reports("access_timeout"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric's configuration is wrong: the GUID of the system", seconds(0), {reports("wrong_system_guid"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric's configuration is wrong: the serial number of the chassis", seconds(0), {reports("wrong_chassis_serial"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric's configuration is wrong: the GPU has too few links", seconds(0), {reports("too_few_links"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric's configuration is wrong: the GPU's firmware is incompatible", seconds(0), {reports("incompatible_firmware"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric's configuration is wrong: the location of the GPU", seconds(0), {reports("invalid_location"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric's configuration is wrong: the state of the GPU", seconds(0), {reports("invalid_gpu_state"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric works with less bandwidth", seconds(0), {reports("degraded_bandwidth"), kNotHealthy}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric reports that it is unhealthy", seconds(0), {above(of_state(catalog::fabric_health, "state", "unhealthy"), 0), kHasPartition}},
    {"fabric_unhealthy", degraded, Action::drain, "GpuFabricUnhealthy", "the fabric works with limited capacity", seconds(0), {above(of_state(catalog::fabric_health, "state", "limited_capacity"), 0)}},

    {"pcie_width", degraded, Action::drain, "GpuPcieLinkDegraded", "the PCIe link has {value} of {of} lanes while the GPU is busy", minutes(1), {never_at(kLanes, catalog::pcie_link_max_lanes), kBusy}},
    {"pcie_speed", degraded, Action::drain, "GpuPcieLinkDegraded", "the PCIe link runs at generation {value} of {of} while the GPU is busy", minutes(1), {never_at(kGeneration, catalog::pcie_link_max_generation), kBusy}},
    {"pcie_fatal", failed, Action::reboot, "GpuPcieErrors", "{value} fatal PCIe errors within an hour", seconds(0), {over(above(of_severity(catalog::pcie_errors, "fatal"), 0), Over::event, hours(1))}},
    // 8 a minute is the most that NVIDIA's driver team accepts (DCGM, DCGM_LIMIT_MAX_PCIREPLAY_RATE).
    {"pcie_replays", degraded, Action::drain, "GpuPcieReplays", "{value} PCIe packets were sent again within 5 minutes", seconds(0), {over(above({&catalog::pcie_replays}, 8 * 5), Over::rise, minutes(5))}},

    // A card at its power limit works as designed, so the cause "power" is not here; the power brake is a signal of the
    // machine's power supply.
    {"thermal_throttling", degraded, Action::drain, "GpuThermalThrottling", "heat limited the clocks for {percent} of the last minute", seconds(10), {throttled(cause("thermal"))}},
    {"hardware_throttling", degraded, Action::drain, "GpuHardwareThrottling", "the hardware limited the clocks for {percent} of the last minute", seconds(10), {throttled(cause("hardware"))}},
    {"power_brake", degraded, Action::drain, "GpuPowerBrake", "the machine's power brake limited the clocks for {percent} of the last minute", seconds(10), {throttled({&catalog::throttle_reason_active, {"reason", "hw_power_brake"}})}},
    {"reliability_throttling", degraded, Action::drain, "GpuReliabilityThrottling", "the board's reliability limit held the clocks down for {percent} of the last minute", seconds(10), {throttled(cause("reliability"))}},
    {"temperature_near_limit", degraded, Action::drain, "GpuTemperatureNearLimit", "{value} degrees are left to the nearest temperature limit", minutes(1), {below({&catalog::temperature_margin, {}, Reduce::lowest}, 5)}},
    {"fan_stopped", degraded, Action::replace, "GpuFanStopped", "a fan stands still while the GPU is hot", minutes(1), {below({&catalog::fan_rpm, {}, Reduce::lowest}, 1), kHot}},
    {"fan_stopped", degraded, Action::replace, "GpuFanStopped", "a fan is off while the GPU is hot", minutes(1), {below({&catalog::fan_speed, {}, Reduce::lowest}, 0.01), kHot}},
    // The peak of 5 minutes, not the mean: a busy card may clock down between two batches.
    {"clocks_low", degraded, Action::reset, "GpuClocksLow", "the clock stays at {value} of {of} Hz while the GPU is busy, and no cause is reported", minutes(1), {over(times(below(kClock, 0.5), {&catalog::clock_max, {"clock", "graphics"}}), Over::highest, minutes(5)), kBusy, kNotThrottled}},
    // Inference servers fill 90 to 95 % by design; above, the next allocation fails.
    {"memory_nearly_full", degraded, Action::none, "GpuMemoryNearlyFull", "{value} of {of} bytes of the GPU's memory are used", minutes(15), {times(above({&catalog::memory_used, {"memory", "vram"}}, 0.98), {&catalog::memory_size, {"memory", "vram"}})}},
    {"memory_nearly_full", degraded, Action::none, "GpuMemoryNearlyFull", "{value} of {of} bytes of the memory that the GPU shares with the host are used", minutes(15), {times(above({&catalog::memory_used, {"memory", "unified"}}, 0.98), {&catalog::memory_size, {"memory", "unified"}})}},

    {"ecc_mode_differs", degraded, Action::reset, "GpuEccModeDiffers", "its ECC mode differs from that of the machine's other GPUs of this model", minutes(1), {{{&catalog::mode, {"mode", "ecc", "state", "enabled"}}, Compare::differs_in_model}}},
    {"driver_version_differs", degraded, Action::reboot, "GpuDriverVersionDiffers", "its driver version differs from that of the machine's other GPUs of this vendor", minutes(1), {{{&catalog::info, {}, Reduce::highest, "driver_version"}, Compare::differs_in_vendor}}},
    // amdgpu resets the card itself after such an error (drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c), which ends its jobs.
    {"hardware_errors", degraded, Action::reset, "GpuHardwareErrorsUncorrected", "{value} uncorrected errors of blocks other than memory since the driver was loaded", seconds(0), {since_opened(of_severity(catalog::hardware_errors, "uncorrected"))}},
    // NVIDIA/NVSentinel, docs/configuration/health-events-analyzer.md (collectors/kernel/repetition.hpp); /api/v1/events has the place.
    {"xid_repeated", degraded, Action::drain, "GpuXid", "an XID has come back at the same place within 24 h: run the field diagnosis", seconds(0), {of_log({"event", "repeated_xid"}, hours(24))}},
    {"device_reset", degraded, Action::restart_job, "GpuReset", "the GPU was reset; its jobs have ended", seconds(0), {event(catalog::events, {"event", "reset"}, minutes(10))}},
    {"device_reset", degraded, Action::restart_job, "GpuReset", "the GPU lost its memory in a reset; its jobs have ended", seconds(0), {event(catalog::events, {"event", "memory_lost"}, minutes(10))}},
};
// clang-format on

constexpr Condition kMissing{"devices_missing",
                             failed,
                             Action::reboot,
                             "GpuExpectedMissing",
                             "{value} of {of} expected GPUs are read",
                             minutes(1),
                             {times(below(kUp, 1), {&self_catalog::devices_expected})}};

std::string number_text(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string duration_text(seconds time) {
  if (time % hours(24) == seconds(0)) return number_text(static_cast<double>(time / hours(24))) + " d";
  if (time % hours(1) == seconds(0)) return number_text(static_cast<double>(time / hours(1))) + " h";
  if (time % minutes(1) == seconds(0)) return number_text(static_cast<double>(time / minutes(1))) + " min";
  return number_text(static_cast<double>(time.count())) + " s";
}

std::string reading_text(const Reading& reading) {
  std::string labels;
  for (const LabelSet::Pair& pair : reading.labels.pairs) {
    if (pair.name.empty()) continue;
    labels += (labels.empty() ? "" : ",") + std::string(pair.name) + "=\"" + std::string(pair.value) + '"';
  }
  const std::string series = std::string(reading.family->name) + (labels.empty() ? "" : "{" + labels + "}");
  if (!reading.text.empty()) return std::string(reading.text) + " of " + series;
  constexpr std::string_view kNames[] = {"", "lowest ", "highest "};
  return std::string(kNames[static_cast<std::size_t>(reading.reduce)]) + series;
}

std::string over_text(const Term& term) {
  const std::string reading = reading_text(term.reading);
  const std::string window = duration_text(term.window);
  switch (term.over) {
    case Over::now:
      return reading;
    case Over::mean:
      return "mean of " + reading + " over " + window;
    case Over::highest:
      return "maximum of " + reading + (term.window == kUntilRelease ? " at any time" : " over " + window);
    case Over::rise:
      return "growth of " + reading + " within " + window;
    case Over::event:
      break;
  }
  if (term.window == kUntilRelease) return reading + " since the driver was opened";
  return "growth of " + reading + ", until " + window + " after the last";
}

/// All rows, and the texts that those of the XIDs refer to.
struct Rows {
  std::vector<std::string> texts;
  std::vector<Condition> rows = {kMissing};

  Rows() {
    rows.insert(rows.end(), std::begin(kTable), std::end(kTable));
    texts.reserve(2 * events::kXids.size());
    for (const events::Xid& xid : events::kXids) {
      if (xid.severity == none || !xid.has_series) continue;
      const std::string& reason = texts.emplace_back("xid_" + std::string(xid.code));
      const std::string& text =
          texts.emplace_back("XID " + std::string(xid.code) + ": " + std::string(xid.meaning));
      rows.push_back(condition_of(xid, reason, text));
    }
  }
};

}  // namespace

bool is_of_links(const Condition& condition) noexcept {
  const MetricDescriptor* const family = condition.terms[0].reading.family;
  return family == &catalog::link_up || family == &catalog::link_speed || family == &catalog::link_errors ||
         family == &catalog::link_bit_error_ratio;
}

std::span<const Reading> proofs_of_reset() noexcept {
  static constexpr Reading kProofs[] = {of_state(catalog::events, "event", "reset"),
                                        of_state(catalog::events, "event", "returned"),
                                        of_state(catalog::recovery_action, "action", "none")};
  return kProofs;
}

std::span<const Condition> conditions() noexcept { return kTable; }
const Condition& devices_missing() noexcept { return kMissing; }

std::span<const Condition> all_conditions() {
  static const Rows rows;
  return rows.rows;
}

std::string runbook_of(const Condition& condition) {
  std::string anchor(condition.alert);
  std::ranges::transform(anchor, anchor.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return anchor;
}

std::string test_text(const Term& term) {
  const std::string text = over_text(term);
  if (term.compare == Compare::differs_in_model) return text + " differs from most GPUs of its model";
  if (term.compare == Compare::differs_in_vendor) return text + " differs from most GPUs of its vendor";
  if (term.compare == Compare::below_usual) {
    return text + " is below its maximum at any time, or below that of most GPUs of its model";
  }
  const std::string limit = number_text(term.threshold);
  const std::string sign = term.compare == Compare::above ? " > " : " < ";
  if (term.of.family == nullptr) return text + sign + limit;
  return text + sign + (term.threshold == 1 ? "" : limit + " x ") + reading_text(term.of);
}

std::string test_text(const Condition& condition) {
  std::string text;
  for (const Term& term : condition.terms) {
    if (term.reading.family != nullptr) text += (text.empty() ? "" : " and ") + test_text(term);
  }
  return text;
}

}  // namespace gpumeter::health
