#include "collectors/events/catalogue.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>

namespace gpumeter::events {

namespace {

using enum Severity;
using Do = Action;

// The texts are those of Linux 6.12 (drivers/gpu/drm, drivers/pci/pcie, drivers/net/ethernet/mellanox) and of
// NVIDIA's open kernel modules, 535 to 595, with the variants that older and newer versions write.
// clang-format off
constexpr Message kMessages[] = {
    // The driver repeats a real XID 79 in one of these; without that XID they are all that the log has.
    {"NVRM", "*fallen off the bus and is not responding to commands", Kind::off_bus, failed, Do::reboot, "the GPU no longer answers on the PCI bus"},
    {"NVRM", "*GPU has fallen off the bus", Kind::off_bus, failed, Do::reboot, "the GPU no longer answers on the PCI bus"},
    {"NVRM", "GPU at * has fallen off the bus", Kind::off_bus, failed, Do::reboot, "the GPU no longer answers on the PCI bus"},
    {"NVRM", "*RmInitAdapter failed!", Kind::init_failed, failed, Do::reboot, "the driver could not start the GPU"},
    {"NVRM", "*rm_init_adapter failed", Kind::init_failed, failed, Do::reboot, "the driver could not start the GPU"},
    {"NVRM", "*rm_init_adapter(#) failed", Kind::init_failed, failed, Do::reboot, "the driver could not start the GPU"},
    {"NVRM", "*uvm encountered global fatal error", Kind::driver_error, failed, Do::reboot, "the driver's unified memory has failed for all programs"},
    {"nvidia-uvm", "*ncountered a global fatal error", Kind::driver_error, failed, Do::reboot, "the driver's unified memory has failed for all programs"},

    {"amdgpu", "ring * timeout, but soft recovered", Kind::ring_timeout, none, Do::restart_job, "a job hung on an engine and was ended without a reset"},
    {"amdgpu", "ring * timeout", Kind::ring_timeout, degraded, Do::restart_job, "a job hangs on an engine"},
    {"amdgpu", "qcm fence wait loop timeout expired", Kind::ring_timeout, degraded, Do::restart_job, "the compute queues hang"},
    {"radeon", "ring # stalled for more than", Kind::ring_timeout, degraded, Do::restart_job, "a job hangs on an engine"},
    {"radeon", "GPU lockup", Kind::ring_timeout, degraded, Do::restart_job, "a job hangs on an engine"},
    {"amdgpu", "Ring * reset succeeded", Kind::reset, none, Do::restart_job, "an engine was reset; the job on it has ended", Step::part},
    {"amdgpu", "Ring * reset fail", Kind::reset, degraded, Do::restart_job, "an engine could not be reset; the driver resets the GPU next", Step::part},
    // Without a success within a minute, the reset has failed.
    {"amdgpu", "GPU reset begin!", Kind::reset, degraded, Do::restart_job, "the driver resets the GPU; its jobs end", Step::begins},
    {"amdgpu", "GPU reset succeeded", Kind::reset, none, Do::restart_job, "the GPU was reset; its jobs have ended"},
    {"radeon", "GPU reset succeeded", Kind::reset, none, Do::restart_job, "the GPU was reset; its jobs have ended"},
    {"amdgpu", "GPU reset(#) succeeded", Kind::reset, none, Do::restart_job, "the GPU was reset; its jobs have ended"},
    {"amdgpu", "GPU reset(#) failed", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"amdgpu", "GPU reset failed", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"radeon", "GPU reset failed", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"amdgpu", "GPU reset end with ret = -", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"amdgpu", "GPU Recovery Failed:", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"amdgpu", "GPU pre asic reset failed", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"amdgpu", "ASIC reset failed with error", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"amdgpu", "GPU mode# reset failed", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"amdgpu", "VRAM is lost due to GPU reset!", Kind::reset, degraded, Do::restart_job, "the GPU lost its memory in a reset; its jobs have ended"},
    {"amdgpu", "device lost from bus!", Kind::off_bus, failed, Do::reboot, "the GPU no longer answers on the PCI bus"},
    {"amdgpu", "*page fault (", Kind::page_fault, none, Do::restart_job, "a program used an address that is not its own"},
    {"amdgpu", "GPU fault detected:", Kind::page_fault, none, Do::restart_job, "a program used an address that is not its own"},
    {"radeon", "GPU fault detected:", Kind::page_fault, none, Do::restart_job, "a program used an address that is not its own"},
    // One such message may pass; the GPU needs a reset if they repeat.
    {"amdgpu", "SMU: I'm not done with your previous command", Kind::firmware, degraded, Do::none, "the power controller does not answer; reset the GPU if this repeats"},
    {"amdgpu", "Msg issuing pre-check failed", Kind::firmware, degraded, Do::none, "the power controller does not answer; reset the GPU if this repeats"},
    {"amdgpu", "SMU: No response msg_reg:", Kind::firmware, degraded, Do::none, "the power controller does not answer; reset the GPU if this repeats"},
    {"amdgpu", "SMU is in hanged state", Kind::firmware, degraded, Do::none, "the power controller does not answer; reset the GPU if this repeats"},
    {"amdgpu", "MES* failed to respon", Kind::firmware, degraded, Do::none, "the scheduler in the GPU does not answer; a reset follows if it stays so"},
    {"amdgpu", "*Fatal error during GPU init", Kind::init_failed, failed, Do::reboot, "the driver could not start the GPU"},
    {"amdgpu", "*uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected", Kind::ras, failed, Do::reset, "uncorrectable error of the hardware"},
    {"amdgpu", "*# uncorrectable hardware errors detected", Kind::ras, failed, Do::reset, "uncorrectable errors of the hardware"},
    {"amdgpu", "*# new uncorrectable hardware errors detected", Kind::ras, failed, Do::reset, "uncorrectable errors of the hardware"},
    {"amdgpu", "*# deferred hardware errors detected", Kind::ras, degraded, Do::none, "uncorrectable errors of the hardware in data that no program has used yet"},
    {"amdgpu", "*# new deferred hardware errors detected", Kind::ras, degraded, Do::none, "uncorrectable errors of the hardware in data that no program has used yet"},
    {"amdgpu", "*# correctable hardware errors detected", Kind::ras, none, Do::none, "errors that the hardware has corrected"},
    {"amdgpu", "*# new correctable hardware errors detected", Kind::ras, none, Do::none, "errors that the hardware has corrected"},
    {"amdgpu", "*Accelerator Check Architecture events logged", Kind::ras, none, Do::none, "the hardware's checks found errors; the lines behind it count them"},
    {"amdgpu", "*poison is consumed by", Kind::ras, failed, Do::reset, "a job used data with an uncorrectable error"},
    {"amdgpu", "*Saved bad pages # reaches threshold value #", Kind::ras, failed, Do::replace, "the memory has as many bad pages as the driver accepts"},

    {"xe", "*CRITICAL: Xe has declared device * as wedged", Kind::reset, failed, Do::reboot, "the driver gave the GPU up; bind it again, or reboot"},
    {"xe", "*reset failed (", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"xe", "*Engine reset: engine_class=", Kind::reset, none, Do::restart_job, "an engine was reset; the job on it has ended", Step::part},
    {"xe", "*GuC engine reset request failed", Kind::reset, degraded, Do::restart_job, "an engine could not be reset; the driver resets more next", Step::part},
    {"xe", "*GT#: reset started", Kind::reset, degraded, Do::restart_job, "the driver resets a part of the GPU; its jobs end", Step::begins},
    {"xe", "*GT#: reset done", Kind::reset, none, Do::restart_job, "a part of the GPU was reset; its jobs have ended"},
    {"xe", "*Timedout job: seqno=", Kind::ring_timeout, degraded, Do::restart_job, "a job hangs on an engine"},
    {"xe", "*Engine memory CAT error", Kind::page_fault, none, Do::restart_job, "a program used an address that is not its own"},
    {"xe", "*Fault response: Unsuccessful", Kind::page_fault, none, Do::restart_job, "a program used an address that is not its own"},
    {"xe", "*In Survivability Mode", Kind::init_failed, failed, Do::drain, "the firmware did not start; the card waits for new firmware"},
    {"xe", "*Survivability mode enabled", Kind::init_failed, failed, Do::drain, "the firmware did not start; the card waits for new firmware"},
    {"i915", "*GPU HANG: ecode", Kind::ring_timeout, degraded, Do::restart_job, "a job hangs on an engine"},
    {"i915", "*Resetting chip for", Kind::reset, degraded, Do::restart_job, "the driver resets the GPU; its jobs end"},
    {"i915", "*Resetting chip after", Kind::reset, degraded, Do::restart_job, "the driver resets the GPU; its jobs end"},
    {"i915", "*Resetting * for", Kind::reset, none, Do::restart_job, "an engine was reset; the job on it has ended", Step::part},
    {"i915", "*context reset due to GPU hang", Kind::reset, none, Do::restart_job, "a job hung on an engine and has ended", Step::part},
    {"i915", "*Engine reset failed on", Kind::reset, failed, Do::reset, "an engine could not be reset"},
    {"i915", "*Failed to reset chip", Kind::reset, failed, Do::reboot, "the reset of the GPU has failed"},
    {"i915", "*declaring it wedged", Kind::reset, failed, Do::reboot, "the driver gave the GPU up; bind it again, or reboot"},

    {"gpu", "device wedged, but recovered through", Kind::reset, degraded, Do::restart_job, "the GPU hung and was reset; its jobs have ended"},
    {"gpu", "device wedged, but no recovery needed", Kind::reset, none, Do::restart_job, "a job hung; the GPU needs no reset", Step::part},
    {"gpu", "device wedged, needs recovery", Kind::reset, failed, Do::reset, "the GPU hangs and waits for a reset"},

    {"port", "PCIe Bus Error: severity=Correct", Kind::aer, none, Do::none, "an error on the PCIe link that the hardware has corrected"},
    {"port", "PCIe Bus Error: severity=Uncorrect* (Non-Fatal)", Kind::aer, degraded, Do::none, "a lost packet on the PCIe link; the link still works"},
    {"port", "PCIe Bus Error: severity=Uncorrect* (Fatal)", Kind::aer, failed, Do::reboot, "the PCIe link has failed"},
    {"port", "*Uncorrect* (Non-Fatal) error *rece", Kind::aer, degraded, Do::none, "a lost packet on the PCIe link; the link still works"},
    {"port", "*Uncorrect* (Fatal) error *rece", Kind::aer, failed, Do::reboot, "the PCIe link has failed"},
    {"port", "*Correct* error *received", Kind::aer, none, Do::none, "an error on the PCIe link that the hardware has corrected"},
    {"port", "DPC: containment event, status:", Kind::aer, failed, Do::reboot, "the port has cut off the device below it after an error"},
    {"port", "containment event, status:", Kind::aer, failed, Do::reboot, "the port has cut off the device below it after an error"},

    {"mlx5_core", "Link down", Kind::link_flap, degraded, Do::none, "a network link went down"},
    {"mlx5_core", "Link up", Kind::link_flap, none, Do::none, "a network link came up"},
    {"mlx5_core", "Port: # Link DOWN", Kind::link_flap, degraded, Do::none, "a network link went down"},
    {"mlx5_core", "Port: # Link ACTIVE", Kind::link_flap, none, Do::none, "a network link came up"},
    {"bnxt_en", "NIC Link is Down", Kind::link_flap, degraded, Do::none, "a network link went down"},
    {"bnxt_en", "NIC Link is Up", Kind::link_flap, none, Do::none, "a network link came up"},
    // NVIDIA's NVSentinel treats these three as fatal.
    {"mlx5_core", "*health's compromised - reached miss count", Kind::nic_error, failed, Do::reboot, "the adapter's firmware does not answer"},
    {"mlx5_core", "*health compromised - reached miss count", Kind::nic_error, failed, Do::reboot, "the adapter's firmware does not answer"},
    {"mlx5_core", "*ill cause a leak of a command resource", Kind::nic_error, failed, Do::reboot, "a command of the adapter's driver was never answered"},
    {"mlx5_core", "*nrecoverable hardware error", Kind::nic_error, failed, Do::reboot, "the adapter's hardware has failed"},
    {"mlx5_core", "*Fatal error # detected", Kind::nic_error, failed, Do::reboot, "the adapter's firmware has failed"},
    {"mlx5_core", "Port module event[error]:", Kind::nic_error, degraded, Do::none, "the cable or its module reports a fault"},
    {"mlx5_core", "*Detected insufficient power on the PCIe slot", Kind::nic_error, degraded, Do::none, "the slot offers the adapter less power than it asks for"},
};

// NVIDIA's XID catalogue, sheet "XID 144-150 Decode" of October 2025. The bit 0x80000000 is ignored everywhere.
constexpr std::uint64_t bits(std::initializer_list<unsigned> subcodes) {
  std::uint64_t all = 0;
  for (const unsigned subcode : subcodes) all |= std::uint64_t{1} << subcode;
  return all;
}
constexpr NvlinkRule kNvlinkRules[] = {
    {144, "SAW_MVB", 0x12, Resolution::reset},
    {144, "SAW_MVB", 0x09, Resolution::ignore, 0, false, "poison follows, as an XID 48, 94 or 95"},
    {144, "SAW_MVB", 0x24, Resolution::ignore},
    {145, "RLW_CTRL", 0, Resolution::ignore},
    {145, "RLW_REMAP", 0xC0, Resolution::reset},
    {145, "RLW_REMAP", 0x3F, Resolution::follow, 0, false, "follow the XID 154"},
    {145, "RLW_REMAP", 0x300, Resolution::ignore},
    {145, "RLW_RSPCOL", 0x2, Resolution::reset},
    {145, "RLW_RSPCOL", 0x1, Resolution::ignore},
    {145, "RLW_RXPIPE", 0xF, Resolution::ignore, 0, false, "if it repeats, contact support"},
    {145, "RLW_SRC_TRACK", 0x31, Resolution::reset},
    {145, "RLW_SRC_TRACK", 0xC, Resolution::follow, 0, false, "follow the XID 154"},
    {145, "RLW_SRC_TRACK", 0x2, Resolution::ignore},
    {145, "RLW_TAGSTATE", 0x120002, Resolution::reset},
    {145, "RLW_TAGSTATE", 0x10001, Resolution::ignore},
    {146, "TLW_CTRL", 0x4, Resolution::reset},
    {146, "TLW_CTRL", 0x3, Resolution::ignore},
    {146, "TLW_RX", 0x4, Resolution::reset},
    {146, "TLW_RX", 0x3, Resolution::ignore},
    {146, "TLW_TX", 0x4, Resolution::reset},
    {146, "TLW_TX", 0x3, Resolution::ignore},
    {147, "TREX", 0, Resolution::ignore},
    {148, "NVLPW", 0, Resolution::ignore},
    {148, "NVLPW_CTRL", 0, Resolution::ignore},
    {149, "NETIR", 0, Resolution::reset, 0, false, "follows from another fault; report it if it is alone"},
    {149, "NETIR_INT", 0, Resolution::reset, 0, false, "follows from another fault; report it if it is alone"},
    {149, "NETIR_BER_EVENT", 0, Resolution::ignore, 0, false, "the bit error rate is high: look at the link's signal and cables"},
    {149, "NETIR_LINK_EVT", 0, Resolution::reset, bits({0}), false, "follows from another fault; report it if it is alone"},
    {149, "NETIR_LINK_EVT", 0, Resolution::reset, bits({1}), false, "report it if it occurs more than once a day"},
    {149, "NETIR_LINK_EVT", 0, Resolution::reset, bits({2, 4, 10}), false, "look at the link's signal"},
    {149, "NETIR_LINK_EVT", 0, Resolution::reset, bits({15, 17, 22}), false, "software or an operator closed the link"},
    {149, "NETIR_LINK_EVT", 0, Resolution::reset, bits({16, 18}), false, "software or an operator closed the link, or its signal is bad"},
    {149, "NETIR_LINK_EVT", 0, Resolution::reset, bits({21, 32, 33, 34, 35, 36, 37}), false, "look at the device at the other end of the link"},
    {149, "NETIR_LINK_EVT", 0, Resolution::ignore, bits({38}), false, "software or an operator closed the link"},
    {149, "NETIR_LINK_EVT", 0, Resolution::ignore, bits({40}), false, "the host closed the link"},
    {149, "NETIR_LINK_EVT", 0, Resolution::reset, bits({42, 43}), false, "look at the link's signal and cables"},
    {149, "NETIR_MFDE_EVENT", 3, Resolution::ignore, 0, true},
    {149, "NETIR_MFDE_EVENT", 0, Resolution::reset},
    {150, "MSE_WATCHDOG", 0, Resolution::reset},
};

// NVIDIA, "Fabric Manager for NVIDIA NVSwitch Systems", appendix D, sections D.4 to D.7. A row without
// severity lowers the line's own word; the others apply to fatal lines.
constexpr std::string_view kByLink = "fatal on one link: on an access link, reset its GPUs; on a trunk link, all GPUs and switches";
constexpr std::string_view kWholeFabric = "fatal to the whole fabric";
constexpr Sxid kSxids[] = {
    {10001, 10002, none, Do::none, "the host has seen an interrupt of the switch; informative"},
    {10003, 10003, failed, Do::reset, "an interrupt that the driver does not handle: reset all GPUs and switches"},
    {10004, 10005, none, Do::none, "the host has seen an interrupt of the switch; informative"},
    {11001, 11001, failed, Do::reset, kByLink}, {11009, 11009, failed, Do::reset, kByLink}, {11013, 11013, failed, Do::reset, kByLink},
    {11018, 11020, failed, Do::reset, kByLink}, {11012, 11012, none, Do::none, "an ECC error that was corrected"}, {11021, 11023, none, Do::none, "an ECC error that was corrected"},
    {12001, 12002, failed, Do::reset, kByLink}, {12020, 12020, failed, Do::reboot, kWholeFabric},
    {12021, 12021, none, Do::none, "an ECC error that was corrected"}, {12022, 12022, failed, Do::reset, kByLink}, {12023, 12023, none, Do::none, "an ECC error that was corrected"},
    {12024, 12027, failed, Do::reset, kByLink}, {12030, 12032, failed, Do::reset, kByLink}, {14017, 14017, failed, Do::reset, kByLink},
    {15001, 15001, failed, Do::reset, kByLink}, {15006, 15006, failed, Do::reset, kByLink}, {15008, 15008, none, Do::none, "an ECC error that was corrected"},
    {15009, 15010, failed, Do::reset, kByLink}, {15011, 15011, none, Do::none, "an ECC error that was corrected"}, {15012, 15013, failed, Do::reset, kByLink},
    {19047, 19048, failed, Do::reset, kByLink}, {19049, 19049, none, Do::none, "an ECC error that was corrected"}, {19054, 19054, failed, Do::reset, kByLink},
    {19055, 19055, none, Do::none, "an ECC error that was corrected"}, {19056, 19056, failed, Do::reset, kByLink}, {19057, 19057, none, Do::none, "an ECC error that was corrected"},
    {19058, 19058, failed, Do::reset, kByLink}, {19059, 19059, none, Do::none, "an ECC error that was corrected"}, {19060, 19061, failed, Do::reset, kByLink},
    {19062, 19062, none, Do::none, "an ECC error that was corrected"}, {19063, 19064, failed, Do::reset, kByLink}, {19065, 19065, none, Do::none, "an ECC error that was corrected"},
    {19066, 19067, failed, Do::reset, kByLink}, {19068, 19068, none, Do::none, "an ECC error that was corrected"}, {19069, 19070, failed, Do::reset, kByLink},
    {19071, 19071, none, Do::none, "an ECC error that was corrected"}, {19084, 19084, failed, Do::reset, "reset all GPUs and switches"},
    {20001, 20001, none, Do::none, "a packet was sent again"}, {20012, 20012, degraded, Do::none, "the link may be mechanically bad: look at its connectors"},
    {20034, 20034, failed, Do::reset, kByLink}, {22003, 22003, failed, Do::reboot, kWholeFabric}, {22011, 22011, failed, Do::reboot, kWholeFabric},
    {22012, 22012, failed, Do::reset, kByLink}, {22013, 22013, none, Do::none, "the link's controller reports a request; informative"},
    {23001, 23017, failed, Do::reboot, kWholeFabric}, {24001, 24003, none, Do::none, "an ECC error that was corrected"}, {24004, 24007, failed, Do::reset, kByLink},
};

// nvml.h, nvmlDeviceGpuRecoveryAction_t. The texts of the driver changed between versions, the numbers did not.
constexpr RecoveryAction kRecoveryActions[] = {
    {none, Do::none, "the driver requests nothing any more"},
    {failed, Do::reset, "the driver requests a reset of the GPU"},
    {failed, Do::reboot, "the driver requests a reboot of the machine"},
    {failed, Do::drain, "the driver requests that all traffic between GPUs ends"},
    {failed, Do::reset, "the driver requests that the jobs end, then a reset of the GPU"},
    {failed, Do::drain, "the driver requests that the IMEX domain is recovered"},
    {failed, Do::reset, "the driver requests a reset of the GPU's PCI function"},
    {failed, Do::reboot, "the driver requests a reboot of the machine"},
    {degraded, Do::none, "the driver requests an action that this version does not know"},
};
// clang-format on

constexpr std::string_view kGpuDrivers[] = {"amdgpu", "i915", "nvidia", "radeon", "xe"};
constexpr std::string_view kOtherDrivers[] = {"bnxt_en", "mlx5_core", "pcieport"};

bool writes(std::string_view driver, std::string_view row) {
  const bool is_gpu = std::ranges::find(kGpuDrivers, driver) != std::end(kGpuDrivers);
  if (row == "gpu") return is_gpu;
  if (row == "port") return is_gpu || std::ranges::find(kOtherDrivers, driver) != std::end(kOtherDrivers);
  return row == driver;
}

/// Matches a pattern at the start of the text. A pattern has two stars at the most and the text a bounded
/// length, so that the search ends soon.
bool matches(std::string_view pattern, std::string_view text, std::span<std::uint64_t> numbers,
             std::size_t& found) {
  while (!pattern.empty()) {
    const char next = pattern.front();
    if (next == '*') {
      const std::string_view rest = pattern.substr(1);
      const std::size_t before = found;
      for (std::size_t at = 0; at <= text.size(); ++at) {
        if (matches(rest, text.substr(at), numbers, found)) return true;
        found = before;
      }
      return false;
    }
    if (next == '#') {
      const std::optional<std::uint64_t> number = take_number<std::uint64_t>(text);
      if (!number) return false;
      if (found < numbers.size()) numbers[found++] = *number;
    } else {
      if (text.empty() || text.front() != next) return false;
      text.remove_prefix(1);
    }
    pattern.remove_prefix(1);
  }
  return true;
}

std::string quoted_code(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string row(std::initializer_list<std::string> cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string code_range(const Sxid& sxid) {
  return std::to_string(sxid.first) + (sxid.last > sxid.first ? " to " + std::to_string(sxid.last) : "");
}

std::string hex(std::uint32_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (; value != 0; value >>= 4) text.insert(text.begin(), kDigits[value & 15]);
  return "0x" + (text.empty() ? "0" : text);
}

std::string subcodes_text(std::uint64_t subcodes) {
  std::string text;
  for (unsigned each = 0; each < 64; ++each) {
    if ((subcodes >> each & 1) != 0) text += (text.empty() ? "" : ", ") + std::to_string(each);
  }
  return text.empty() ? "any" : text;
}

std::string status_text(const NvlinkRule& rule) {
  if (rule.status == 0) return "any";
  return (rule.is_exact ? "exactly " : "bits of ") + hex(rule.status);
}

constexpr std::string_view kHead = R"(# Events

What drivers write into the kernel's log about GPUs, NVSwitches, PCIe and network adapters, and what gpumeter makes of it.
`gpumeter --print-events=markdown` prints this page from the table that judges. `gpumeter explain` reads log lines by the same table:

```
journalctl -k | gpumeter explain
gpumeter explain xid 149
```

`none` requires no action. A `degraded` device works, but slower or with less safety than it should. A `failed` one must not get
new work before the action was taken. The actions are those of [conditions.md](conditions.md).

## XIDs

Codes of NVIDIA's driver, with the resolution bucket of NVIDIA's XID catalogue. Codes of the class `job` end one process, and
codes of the class `noise` need no action. Codes in brackets have no series of their own; `gpu_xid_errors_total` counts them as `other`.

| code | class | severity | action | bucket | meaning |
|---|---|---|---|---|---|
)";
constexpr std::string_view kMessageRules = R"(
The message of some codes overrides the row:

| code | message | severity | action |
|---|---|---|---|
| 45 | `caused by previous Xid` | none | `restart_job` |
| 74 | no bits but 0, 23 and 30 of the first register | none | `none` |
| 94 | `RST: Yes` | failed | `reset` |
| 144 to 150 | the table of NVLink 5 below | | |
| 154 | the new action, below | | |

### NVLink 5: XIDs 144 to 150

The sub-code is bits 20 to 25 of the first number in brackets, the status is the second number. If several rows match, the
worst counts. If none matches, a line that says `Fatal` asks for a reset and one that says `Nonfatal` for nothing. A `Fatal` line
whose row says IGNORE makes the GPU degraded, without an action.

| code | unit | sub-code | status | resolution | look at |
|---|---|---|---|---|---|
)";
constexpr std::string_view kRecovery = R"(
### XID 154: the new recovery action

| value | severity | action | meaning |
|---|---|---|---|
)";
constexpr std::string_view kSwitches = R"(
## SXIDs

Codes of NVSwitches. A line of the severity `Non-fatal` or `Correctable` requires no action, except that of code 20012. A `Fatal` line whose
code is not here asks for a reset.

| code | severity | action | meaning |
|---|---|---|---|
)";
constexpr std::string_view kOthers = R"(
## Messages without a code

`*` stands for any text, `#` for a number. The driver's name and the PCI address precede the message; `gpu` is each driver of
a GPU, `port` also PCIe bridges and network adapters. The first row that matches counts.

| driver | message | kind | severity | action | meaning |
|---|---|---|---|---|---|
)";

}  // namespace

std::span<const Message> messages() noexcept { return kMessages; }
std::span<const NvlinkRule> nvlink_rules() noexcept { return kNvlinkRules; }
std::span<const Sxid> sxids() noexcept { return kSxids; }

std::string_view event_of(const Message& message) noexcept {
  if (message.kind != Kind::reset) return to_string(message.kind);
  if (message.step == Step::part) return "engine_reset";
  if (message.severity != failed) return to_string(Kind::reset);
  return message.action == Do::reset ? "wedged" : "reset_failed";
}

const Message* find_message(std::string_view driver, std::string_view text,
                            std::span<std::uint64_t>& numbers) noexcept {
  for (const Message& message : kMessages) {
    std::size_t found = 0;
    if (!writes(driver, message.driver) || !matches(message.text, text, numbers, found)) continue;
    numbers = numbers.first(found);
    return &message;
  }
  return nullptr;
}

const Xid& xid_of(std::uint64_t code) noexcept {
  const auto* const known = std::ranges::find_if(
      kXids, [code](const Xid& xid) { return parse_number<std::uint64_t>(xid.code) == code; });
  return known != std::end(kXids) ? *known : kXids.back();
}

const Sxid* sxid_of(unsigned code) noexcept {
  const auto* const known = std::ranges::find_if(
      kSxids, [code](const Sxid& sxid) { return sxid.first <= code && code <= sxid.last; });
  return known != std::end(kSxids) ? known : nullptr;
}

const RecoveryAction& recovery_action_of(std::uint64_t value) noexcept {
  return kRecoveryActions[std::min<std::uint64_t>(value, std::size(kRecoveryActions) - 1)];
}

std::string to_text(const NvlinkRule& rule) {
  const std::string hint = rule.hint.empty() ? "" : " (" + std::string(rule.hint) + ")";
  return std::string(rule.unit) + ", sub-code " + subcodes_text(rule.subcodes) + ", status " +
         status_text(rule) + ": " + std::string(kResolutionNames.of(rule.resolution)) + hint;
}

std::string catalogue_markdown() {
  std::string text(kHead);
  for (const Xid& xid : kXids) {
    const std::string code = xid.has_series ? std::string(xid.code) : "(" + std::string(xid.code) + ")";
    text += row({code, std::string(kXidClassNames.of(xid.kind)), std::string(to_string(xid.severity)),
                 quoted_code(to_string(xid.action)), std::string(xid.bucket), std::string(xid.meaning)});
  }
  text += kMessageRules;
  for (const NvlinkRule& rule : kNvlinkRules) {
    text +=
        row({std::to_string(rule.xid), quoted_code(rule.unit), subcodes_text(rule.subcodes),
             status_text(rule), std::string(kResolutionNames.of(rule.resolution)), std::string(rule.hint)});
  }
  text += kRecovery;
  for (std::size_t value = 0; value < std::size(kRecoveryActions); ++value) {
    const RecoveryAction& each = kRecoveryActions[value];
    const bool is_last = value + 1 == std::size(kRecoveryActions);
    text += row({is_last ? "other" : std::to_string(value), std::string(to_string(each.severity)),
                 quoted_code(to_string(each.action)), std::string(each.meaning)});
  }
  text += kSwitches;
  for (const Sxid& sxid : kSxids) {
    text += row({code_range(sxid), std::string(to_string(sxid.severity)), quoted_code(to_string(sxid.action)),
                 std::string(sxid.meaning)});
  }
  text += kOthers;
  for (const Message& message : kMessages) {
    text += row({quoted_code(message.driver), quoted_code(message.text), quoted_code(to_string(message.kind)),
                 std::string(to_string(message.severity)), quoted_code(to_string(message.action)),
                 std::string(message.meaning)});
  }
  return text;
}

}  // namespace gpumeter::events
