#include "exporter/health/advisories.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "collectors/api/catalog.hpp"

namespace gpumeter::health {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr std::string_view kBlackwell = "B200|B300|GB200|GB300|RTX 50|RTX PRO";
constexpr hours kDay{24};

/// Utilisation that never falls although nobody uses the GPU.
constexpr Term kLatched{{&catalog::utilization}, Compare::above, 0.94, Over::mean, minutes(10)};
constexpr Term kUnused{
    {&catalog::workload_share, {"workload", "unattributed"}}, Compare::above, 0.99, Over::mean, minutes(10)};

// The issues are third parties' reports, not NVIDIA's word. NVIDIA/open-gpu-kernel-modules is OGKM here.
// clang-format off
constexpr Advisory kTable[] = {
    {"hang_after_66_days", "B200", "570.133.20", "570.133.21", 60 * kDay, {}, "calls to this driver were seen to hang after 66 days of uptime: plan a reboot", "OGKM issue 971"},
    {"hang_after_66_days", "B200", "580.105.08", "580.105.09", 60 * kDay, {}, "calls to this driver were seen to hang after 66 days of uptime: plan a reboot", "OGKM issue 971"},
    {"utilization_latched", kBlackwell, "580.95", "595.72", {}, {kLatched, kUnused}, "the utilisation stands above 94 % and no process uses the GPU: a short CUDA program was seen to clear it", "lium-io issues 1140 and 1142"},
    {"lock_orphaned", "", "595.71.05", "595.71.06", {}, {}, "a lock of this driver was seen to stay taken, so that NVML hangs", "OGKM issue 1333"},
    {"links_inactive_after_xid_149", kBlackwell, "590.48.01", "590.48.02", {}, {}, "after XID 149 all links were seen to stay inactive until a reboot", "OGKM issue 1150"},
    {"xid_109_regression", "RTX 50", "580", "", {}, {}, "XID 109 was reported after an update from branch 570", "OGKM issues 962 and 1185"},
    {"power_scope", "GH200", "", "", {}, {}, "the GPU's instantaneous power was seen to include the processor's; its energy counter may fail: use the rail module", "arXiv 2312.02741 and zeus, zeus/device/gpu/nvidia.py"},
    {"energy_counter_lags", "RTX 4090|RTX 5060 Ti", "", "", {}, {}, "the energy counter was seen to be up to 95 % too low while a program reads it more often than once a second", "Dauner, HotCarbon 2026"},
    {"energy_counter_stuck", "MI100|MI210|AMD 738c|AMD 740f", "", "", {}, {}, "the energy counter was seen to stand still: compare it with gpu_power_watts", "rocm_smi_lib issue 180 and amdsmi issue 38"},
    {"security_update", "", "535", "535.309.01", {}, {}, "version 535.309.01 has the security fixes of May 2026", "NVIDIA security bulletin of May 2026, by flatcar issue 2155"},
    {"security_update", "", "580", "580.159.03", {}, {}, "version 580.159.03 has the security fixes of May 2026", "NVIDIA security bulletin of May 2026, by flatcar issue 2155"},
    {"security_update", "", "595", "595.71.05", {}, {}, "version 595.71.05 has the security fixes of May 2026", "NVIDIA security bulletin of May 2026, by flatcar issue 2155"},
};
// clang-format on

using Version = std::array<unsigned, 3>;

/// "580.95.05"; what is missing or no number is 0.
Version version_of(std::string_view text) {
  Version version{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (unsigned& part : version) {
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc() || next == end) break;
    at = next + 1;
  }
  return version;
}

/// "NVIDIA GB200" is no B200: the part begins a word.
bool is_of_model(std::string_view models, std::string_view model) {
  while (!models.empty()) {
    const std::size_t bar = std::min(models.find('|'), models.size());
    const std::size_t at = model.find(models.substr(0, bar));
    if (at != std::string_view::npos && (at == 0 || model[at - 1] == ' ')) return true;
    models.remove_prefix(std::min(bar + 1, models.size()));
  }
  return false;
}

}  // namespace

std::span<const Advisory> advisories() noexcept { return kTable; }

bool concerns(const Advisory& advisory, std::string_view model, std::string_view driver,
              std::chrono::nanoseconds uptime) {
  const Version version = version_of(driver);
  return (version != Version{} || advisory.from.empty()) && uptime >= advisory.uptime &&
         (advisory.models.empty() || is_of_model(advisory.models, model)) &&
         version >= version_of(advisory.from) &&
         (advisory.below.empty() || version < version_of(advisory.below));
}

}  // namespace gpumeter::health
