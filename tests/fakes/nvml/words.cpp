#include "tests/fakes/nvml/words.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/fakes/nvml/value.hpp"

namespace gpumeter::fake_nvml {
namespace {

struct Word {
  std::string_view name;
  std::uint64_t number;
};

// nvml_constants.tsv: NVML_FEATURE_*, NVML_COMPUTEMODE_*, NVML_DEVICE_ARCH_*, NVML_GPU_FABRIC_STATE_*,
// NVML_BRAND_*, NVML_GPU_RECOVERY_ACTION_*, NVML_CC_SYSTEM_*, NVML_GRID_LICENSE_*, NVML_NVLINK_DEVICE_TYPE_*,
// nvmlClocksEventReason*, nvmlEventType*.
constexpr Word kWords[] = {
    {"no", 0},
    {"disabled", 0},
    {"false", 0},
    {"off", 0},
    {"ok", 0},
    {"success", 0},
    {"none", 0},
    {"inactive", 0},
    {"default", 0},
    {"unavailable", 0},
    {"yes", 1},
    {"enabled", 1},
    {"true", 1},
    {"on", 1},
    {"active", 1},
    {"sleep", 2},
    {"traffic_disabled", 3},
    {"exclusive_thread", 1},
    {"prohibited", 2},
    {"exclusive_process", 3},
    {"gpu", nvml::kLinkToGpu},
    {"npu", nvml::kLinkToIbmNpu},
    {"switch", nvml::kLinkToSwitch},
    {"kepler", nvml::kKepler},
    {"maxwell", nvml::kMaxwell},
    {"pascal", nvml::kPascal},
    {"volta", nvml::kVolta},
    {"turing", nvml::kTuring},
    {"ampere", nvml::kAmpere},
    {"ada", nvml::kAda},
    {"hopper", nvml::kHopper},
    {"blackwell", nvml::kBlackwell},
    {"rubin", nvml::kRubin},
    {"not_started", 1},
    {"in_progress", 2},
    {"completed", 3},
    {"healthy", 1},
    {"unhealthy", 2},
    {"limited_capacity", 3},
    {"gpu_reset", 1},
    {"node_reboot", 2},
    {"drain_p2p", 3},
    {"drain_and_reset", 4},
    {"recover_imex_domain", 5},
    {"simulation", 1},
    {"production", 2},
    {"protected_pcie", nvml::kMultiGpuProtectedPcie},
    {"nvle", nvml::kMultiGpuNvle},
    {"host_vgpu", nvml::kHostVgpu},
    {"pass-through", 1},
    {"hmm", nvml::kAddressingModeHmm},
    {"ats", nvml::kAddressingModeAts},
    {"egm", nvml::kCapabilityEgm},
    {"quadro", 1},
    {"tesla", 2},
    {"geforce", 5},
    {"nvidia", 14},
    {"unlicensed", 4},
    {"licensed", 5},
    {"vgpu", 1},
    {"virtual_workstation", 2},
    {"gaming", 3},
    {"compute", 4},
    {"expiry_invalid", 1},
    {"expiry_valid", 2},
    {"expiry_not_applicable", 3},
    {"permanent", 4},
    {"gpu_idle", nvml::kReasonGpuIdle},
    {"applications_clocks", nvml::kReasonApplicationsClocks},
    {"sw_power_cap", nvml::kReasonSwPowerCap},
    {"hw_slowdown", nvml::kReasonHwSlowdown},
    {"sync_boost", nvml::kReasonSyncBoost},
    {"sw_thermal", nvml::kReasonSwThermal},
    {"hw_thermal", nvml::kReasonHwThermal},
    {"hw_power_brake", nvml::kReasonHwPowerBrake},
    {"display_clocks", nvml::kReasonDisplayClocks},
    {"single_bit_ecc", nvml::kEventSingleBitEcc},
    {"double_bit_ecc", nvml::kEventDoubleBitEcc},
    {"xid", nvml::kEventXid},
    {"mig_config_change", nvml::kEventMigConfigChange},
    {"ecc_storm", nvml::kEventEccStorm},
    {"dram_retirement", nvml::kEventDramRetirement},
    {"dram_retirement_failure", nvml::kEventDramRetirementFailure},
    {"poison_non_fatal", nvml::kEventPoisonNonFatal},
    {"poison_fatal", nvml::kEventPoisonFatal},
    {"gpu_unavailable", nvml::kEventGpuUnavailable},
    {"recovery_action", nvml::kEventRecoveryAction},
};

// nvml_constants.tsv: NVML_ERROR_*.
constexpr Word kErrors[] = {
    {"uninitialized", 1},
    {"invalid_argument", 2},
    {"not_supported", 3},
    {"no_permission", 4},
    {"already_initialized", 5},
    {"not_found", 6},
    {"insufficient_size", 7},
    {"insufficient_power", 8},
    {"driver_not_loaded", 9},
    {"timeout", 10},
    {"irq_issue", 11},
    {"library_not_found", 12},
    {"function_not_found", 13},
    {"corrupted_inforom", 14},
    {"gpu_is_lost", 15},
    {"reset_required", 16},
    {"operating_system", 17},
    {"lib_rm_version_mismatch", 18},
    {"in_use", 19},
    {"memory", 20},
    {"no_data", 21},
    {"vgpu_ecc_not_supported", 22},
    {"insufficient_resources", 23},
    {"freq_not_supported", 24},
    {"argument_version_mismatch", 25},
    {"deprecated", 26},
    {"not_ready", 27},
    {"gpu_not_found", 28},
    {"invalid_state", 29},
    {"reset_type_not_supported", 30},
    {"unknown", 999},
};

template <class Range>
const Word* find(const Range& words, std::string_view name) {
  const auto* found =
      std::find_if(std::begin(words), std::end(words), [&](const Word& w) { return w.name == name; });
  return found == std::end(words) ? nullptr : found;
}

}  // namespace

std::optional<std::uint64_t> number_of_word(std::string_view text) {
  const Word* word = find(kWords, text);
  return word == nullptr ? std::nullopt : std::optional(word->number);
}

unsigned error_of(std::string_view name) {
  const Word* error = find(kErrors, name);
  if (error == nullptr) throw std::runtime_error("no error of NVML's: " + std::string(name));
  return static_cast<unsigned>(error->number);
}

const char* name_of_error(unsigned code) {
  for (const auto& error : kErrors) {
    if (error.number == code) return error.name.data();
  }
  return nullptr;
}

}  // namespace gpumeter::fake_nvml
