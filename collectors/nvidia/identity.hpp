#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/device.hpp"
#include "collectors/api/series.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/nvidia/nvml/session.hpp"

namespace gpumeter::nvidia {

/// The facts of a card from NVML that its peaks depend on; 0 and "" mean unknown.
struct Facts {
  std::string name;        ///< nvmlDeviceGetName
  unsigned device_id = 0;  ///< 16 bits, from PCI: the upper half of nvmlPciInfo_t.pciDeviceId
  int cc_major = 0, cc_minor = 0;
  unsigned cores = 0;  ///< nvmlDeviceGetNumGpuCores
  double max_sm_clock_hertz = 0, max_memory_clock_hertz = 0;
  unsigned bus_width_bits = 0;
};

/// The data types of gpu_peak_flops.
inline constexpr std::string_view kDtypes[] = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"};

struct Peak {
  std::string_view dtype;  ///< of kDtypes
  double flops;     ///< dense operations per second (a multiply-add counts as two); never with sparsity
  bool from_table;  ///< from a data sheet; false: by formula, from the card's maximum clock
  friend bool operator==(const Peak&, const Peak&) = default;
};

/// One peak for each data type with a published rate, in the order above. fp32 is the rate of the vector
/// units. The others are rates of the tensor cores where those have the type, accumulating in fp32 (int8: in
/// int32).
std::vector<Peak> peaks_of(const Facts& card);

/// Bytes per second.
std::optional<double> memory_bandwidth_of(const Facts& card) noexcept;

/// The clock in hertz at which the tensor cores have the peak of fp16. nullopt: the peak has no such clock.
std::optional<double> peak_clock_of(const Facts& card) noexcept;

/// Streaming multiprocessors: the cores divided by the cores of one multiprocessor of this compute capability
/// (CUDA C++ programming guide, "Compute Capabilities"). nullopt if that number is unknown.
std::optional<int> multiprocessors_of(const Facts& card) noexcept;

/// The sources of a GPU's power and energy: power.draw.average and power.draw.instant of nvidia-smi (fields
/// 185 and 186), power.draw (nvmlDeviceGetPowerUsage), and the energy counter (field 83).
enum class PowerSource : std::uint8_t { average, instant, usage, hardware };
inline constexpr std::string_view kPowerSources[] = {"average", "instant", "usage", "hardware"};

/// A sensor takes the mean of `window` seconds every `period` seconds.
struct PowerSensor {
  double period, window;
  double coverage() const noexcept;  ///< share of the time that the windows hold
  /// Relative standard uncertainty (coverage factor 1) of the energy over `span` seconds, read every
  /// `reading_interval` seconds.
  double energy_uncertainty(double reading_interval, double span) const noexcept;
};

/// As measured on cards of that chip; nullopt: nobody has published it.
std::optional<PowerSensor> power_sensor_of(const Facts& card, std::string_view driver,
                                           PowerSource source) noexcept;

/// By source, those that the GPU has. May block.
using PowerSensors = std::array<std::optional<PowerSensor>, std::size(kPowerSources)>;
PowerSensors power_sensors(NvmlCaller gpu, const Facts& card, std::string_view driver);

/// A GPU instance of a divided GPU. Its compute instances share its memory and its metrics, so the GPU
/// instance is the unit of measurement. The handle is that of its first compute instance. Its multiprocessors
/// are the sum over all compute instances.
struct MigInstance {
  nvml::Device handle;
  unsigned gpu_instance;
  std::string uuid;  ///< of the first compute instance: ids are reused, uuids are not
  Partition partition;
  std::vector<nvml::Device> compute_instances{};  ///< handles, `handle` among them
  std::vector<std::string> compute_uuids{};       ///< uuids of the same; empty if unknown
  double multiprocessors = 0;                     ///< of all compute instances; 0: not reported
  double memory_bytes = 0;                        ///< 0: not reported
};

/// Empty if the GPU is not divided, or if a call for the GPU failed. If a call failed that may succeed later,
/// `gpu` was_troubled() afterwards. May block.
std::vector<MigInstance> mig_instances(NvmlCaller& gpu);

/// A text that describes the division, for comparison: "3g.40gb:1=MIG-..., ...". The uuids of several compute
/// instances are joined by "+".
std::string fingerprint(const std::vector<MigInstance>& instances);

// The GPU's place in its machine, at attach. May block.

/// False if NVML reports that the GPU has no memory: both calls return NOT_SUPPORTED, as on GB10, whose GPU
/// allocates the host's memory. True if a call fails in any other way.
bool has_own_memory(NvmlCaller& gpu);

/// The labels of gpu_platform_info; empty if the driver does not report the place. From Blackwell on, the
/// place in the rack (nvmlDeviceGetPlatformInfo). On boards with several GPU modules before it, the module.
std::vector<Label> platform_labels(NvmlCaller& gpu);

/// The labels of gpu_inventory_info: those that the driver reports.
std::vector<Label> inventory_labels(NvmlCaller& gpu);

/// Returns where the GPU's NVLinks lead, sorted, each place once (DeviceInfo::linked_to): the PCI address of
/// a GPU, or `switch:` and the PCI address of an NVSwitch. NVSwitches of NVLink 5 are no PCI functions of the
/// machine, so their address is empty: all of them are one domain. Links that are down lead nowhere. Calls
/// NVML twice a link. May block.
std::vector<std::string> link_peers(NvmlCaller& gpu);

// The identity of a GPU from NVML, at discovery and at attach. May block.

/// Fills all fields but `numa_node`, which comes from the bus. Returns nullopt if NVML returns no UUID: the
/// driver withholds it while the GPU is lost or being reset.
std::optional<DeviceInfo> identify(NvmlCaller& gpu, unsigned index);

/// Finds the GPU with that UUID in the session.
std::optional<NvmlCaller> find_gpu(const std::shared_ptr<NvmlSession>& session, const std::string& uuid);

/// The facts from which peaks are computed or looked up.
Facts peak_facts(NvmlCaller& gpu);

/// The GPU's sources in NVML, by group, to explain why a value is missing.
std::vector<SourceReport> sources_of_gpu(const std::string& library, const DeviceInfo& info);

}  // namespace gpumeter::nvidia
