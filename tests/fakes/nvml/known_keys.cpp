#include "tests/fakes/nvml/known_keys.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

namespace gpumeter::fake_nvml {
namespace {

/// The keys below a path; "#" is any number.
struct Group {
  std::string_view path, keys;
};

constexpr Group kSystem[] = {
    {"system", "driver_version nvml_version cuda_version"},
    {"system.confidential", "environment feature devtools multi_gpu"},
    {"layouts", "memory fabric fields gpm_metrics process_info"},
};

constexpr Group kDevice[] = {
    {"",
     "present name uuid serial vbios inforom inforom_oem inforom_ecc inforom_power brand board_id "
     "board_part_number multi_gpu_board pdi capabilities gsp_firmware minor architecture compute_capability "
     "cores "
     "memory_bus_width numa_node module_id virtualization unrepairable_memory supported_events "
     "operational_events index gi ci "
     "gi_profile gi_start"},
    {"pci", "bus_id device_id subsystem_id base_class sub_class"},
    {"modes", "persistence compute display_active ecc ecc_pending accounting addressing c2c"},
    {"utilization", "gpu memory"},
    {"engines", "encoder decoder jpeg ofa period_us"},
    {"memory", "total reserved used free"},
    {"bar1", "total reserved used free"},
    {"protected_memory", "total used free"},
    {"encoder", "sessions frames_per_second latency_usec"},
    {"capture", "sessions frames_per_second latency_usec"},
    {"power", "draw energy limit default_limit min_limit max_limit"},
    {"temperature", "gpu margin"},
    {"temperature.thresholds",
     "shutdown slowdown memory_max gpu_max acoustic_min acoustic_current acoustic_max gps_current"},
    {"clocks", "graphics sm memory video pstate reasons supported_reasons customer_boost"},
    {"clocks.max", "graphics sm memory video"},
    {"fields", "#"},
    {"fields.#", "value type"},
    {"fields.#.scopes", "all each #"},
    {"ecc.corrected.volatile", "total l1 l2 dram register texture shm cbu sram"},
    {"ecc.corrected.aggregate", "total l1 l2 dram register texture shm cbu sram"},
    {"ecc.uncorrected.volatile", "total l1 l2 dram register texture shm cbu sram"},
    {"ecc.uncorrected.aggregate", "total l1 l2 dram register texture shm cbu sram"},
    {"retired_pages", "single_bit double_bit"},
    {"remapped_rows", "corrected uncorrected pending failure"},
    {"remapped_rows.banks", "max high partial low none"},
    {"bank_remapper", "active inactive pending max none"},
    {"repair", "channel tpc"},
    {"sram", "l2 sm pcie mcu other threshold_exceeded"},
    {"platform", "chassis_serial slot tray host module"},
    {"vgpus", "active"},
    {"vgpus.active.#", "id vm memory sm present"},
    {"vgpus.samples", "period_ms"},
    {"pcie", "generation max_generation gpu_max_generation width max_width replays"},
    {"nvlink", "count"},
    {"nvlink.link", "state remote remote_address"},
    {"nvlink.link.errors", "replay recovery crc_flit crc_data ecc_data"},
    {"nvlink.links.#", "state remote remote_address"},
    {"nvlink.links.#.errors", "replay recovery crc_flit crc_data ecc_data"},
    {"fabric", "state status clique cluster_uuid health_mask health_summary"},
    {"fans.#", "percent rpm"},
    {"licence", "supported"},
    {"licence.features.#", "code state enabled product info"},
    {"licence.features.#.expiry", "status year month day hour minute second"},
    {"processes", "compute graphics mps"},
    {"processes.compute.#", "pid memory gi ci sm present"},
    {"processes.graphics.#", "pid memory gi ci sm present"},
    {"processes.mps.#", "pid memory gi ci sm present"},
    {"processes.samples", "period_ms capacity dry"},
    {"processes.samples.dry.#", "#"},
    {"mig", "mode mode_pending most instances"},
    {"attributes",
     "multiprocessors copy_engines decoders encoders jpegs ofas gpu_slices compute_slices memory"},
    {"gpm", "supported"},
    {"gpm.metrics", "#"},
    {"samples", "power gpu memory encoder decoder sm_clock memory_clock module_power jpeg ofa"},
    {"samples.*", "period_ms capacity value dry"},
    {"samples.*.dry.#", "#"},
};

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view take_part(std::string_view& rest) {
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  const std::string_view part = rest.substr(0, dot);
  rest.remove_prefix(std::min(dot + 1, rest.size()));
  return part;
}

bool same_path(std::string_view pattern, std::string_view path) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = take_part(pattern), part = take_part(path);
    if (wanted != part && wanted != "*" && !(wanted == "#" && is_number(part))) return false;
  }
  return pattern.empty() && path.empty();
}

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t space = std::min(words.find(' '), words.size());
    const std::string_view known = words.substr(0, space);
    if (known == word || (known == "#" && is_number(word))) return true;
    words.remove_prefix(std::min(space + 1, words.size()));
  }
  return false;
}

bool is_known(std::span<const Group> groups, std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const std::string_view parent = dot == std::string_view::npos ? "" : path.substr(0, dot);
  const std::string_view key = path.substr(dot == std::string_view::npos ? 0 : dot + 1);
  if (parent == "errors" || parent == "latency") return key == "all" || key.starts_with("nvml");
  return std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
    return same_path(group.path, parent) && has_word(group.keys, key);
  });
}

/// Removes a prefix such as "mig.instances.3.", because an instance has the keys of a device.
std::string_view of_instance(std::string_view path) {
  constexpr std::string_view kInstances = "mig.instances.";
  if (!path.starts_with(kInstances)) return path;
  path.remove_prefix(kInstances.size());
  take_part(path);
  return path;
}

void check(std::span<const Group> groups, const Facts& facts) {
  for (const auto& [path, value] : facts.values) {
    const auto list = facts.counts.find(path);
    const bool empty_list = list != facts.counts.end() && list->second == 0;
    if (!empty_list && !is_known(groups, of_instance(path)))
      throw std::runtime_error("nothing reads the key " + path);
  }
}

}  // namespace

void check_system_keys(const Facts& system) { check(kSystem, system); }
void check_device_keys(const Facts& device) { check(kDevice, device); }

}  // namespace gpumeter::fake_nvml
