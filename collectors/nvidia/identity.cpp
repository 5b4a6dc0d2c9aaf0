#include "collectors/nvidia/identity.hpp"

#include <array>

#include "collectors/nvidia/link_peers.hpp"
#include "collectors/nvidia/mig_instances.hpp"
#include "collectors/nvidia/readers/field_batch.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::nvidia {
namespace {

std::string architecture_name(unsigned architecture) {
  switch (architecture) {
    case nvml::kKepler:
      return "kepler";
    case nvml::kMaxwell:
      return "maxwell";
    case nvml::kPascal:
      return "pascal";
    case nvml::kVolta:
      return "volta";
    case nvml::kTuring:
      return "turing";
    case nvml::kAmpere:
      return "ampere";
    case nvml::kAda:
      return "ada";
    case nvml::kHopper:
      return "hopper";
    case nvml::kBlackwell:
      return "blackwell";
    case nvml::kRubin:
      return "rubin";
    default:
      return "";
  }
}

std::string text(std::optional<unsigned> number) { return number ? std::to_string(*number) : std::string(); }

// nvmlDeviceGetGspFirmwareVersion takes no size: NVML_GSP_FIRMWARE_VERSION_BUF_SIZE is 64.
std::string firmware_version(NvmlCaller& gpu) {
  std::array<char, 128> buffer{};
  gpu.call<&F::nvmlDeviceGetGspFirmwareVersion>(buffer.data());
  return buffer.data();
}

std::string pci_address(NvmlCaller& gpu) {
  nvml::PciInfo bus{};
  if (gpu.call<&F::nvmlDeviceGetPciInfo_v3>(&bus) != nvml::kSuccess) return "";
  return pci::to_string(
      {bus.domain, static_cast<std::uint8_t>(bus.bus), static_cast<std::uint8_t>(bus.device), 0});
}

// Only if the GPU's memory is a NUMA node of the host (Grace). The header defines all ones as "none".
std::optional<int> memory_numa_node(NvmlCaller& gpu) {
  const std::optional<unsigned> node = number_of<&F::nvmlDeviceGetNumaNodeId>(gpu);
  if (!node || *node > 0xFFFF) return std::nullopt;
  return static_cast<int>(*node);
}

/// Streaming multiprocessors: the cores divided by the cores of one multiprocessor of this compute capability
/// (CUDA C++ programming guide, "Compute Capabilities"). nullopt if that number is unknown.
std::optional<int> multiprocessors(const Facts& facts) {
  const int capability = facts.cc_major * 10 + facts.cc_minor;
  const unsigned per = capability >= 86   ? 128
                       : capability >= 70 ? 64
                       : capability == 60 ? 64
                       : capability >= 50 ? 128
                       : capability >= 30 ? 192
                                          : 0;
  if (per == 0 || facts.cores == 0) return std::nullopt;
  return static_cast<int>(facts.cores / per);
}

constexpr unsigned kTotalEnergy = 83;    // NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION
constexpr unsigned kThrottlePower = 74;  // NVML_FI_DEV_PERF_POLICY_POWER

ReadStatus utilization(NvmlCaller& gpu) {
  nvml::Utilization rates{};
  return status_of(gpu.call<&F::nvmlDeviceGetUtilizationRates>(&rates));
}
ReadStatus energy(NvmlCaller& gpu) { return read_field(gpu, kTotalEnergy, 0).sample.status; }
ReadStatus throttle_counters(NvmlCaller& gpu) { return read_field(gpu, kThrottlePower, 0).sample.status; }
ReadStatus performance_metrics(NvmlCaller& gpu) {
  nvml::GpmSupport support{};
  const ReadStatus status = status_of(gpu.call<&F::nvmlGpmQueryDeviceSupport>(&support));
  return status == ReadStatus::ok && support.is_supported == 0 ? ReadStatus::unsupported : status;
}
ReadStatus ecc(NvmlCaller& gpu) {
  unsigned mode = 0;
  unsigned pending = 0;
  const ReadStatus status = status_of(gpu.call<&F::nvmlDeviceGetEccMode>(&mode, &pending));
  return status == ReadStatus::ok && mode == 0 ? ReadStatus::unsupported : status;
}
ReadStatus events(NvmlCaller& gpu) {
  std::uint64_t types = 0;
  const ReadStatus status = status_of(gpu.call<&F::nvmlDeviceGetSupportedEventTypes>(&types));
  return status == ReadStatus::ok && (types & nvml::kEventXid) == 0 ? ReadStatus::unsupported : status;
}

struct Source {
  std::string_view what, where;
  ReadStatus (*probe)(NvmlCaller&);
  std::string_view missing;  ///< why the source may be missing
};
constexpr Source kSources[] = {
    {"utilization", "nvmlDeviceGetUtilizationRates", utilization,
     "not available for a divided GPU (MIG): see gpu_partition_*"},
    {"energy counter", "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy,
     "Volta and newer; otherwise power is integrated"},
    {"throttle counters", "NVML_FI_DEV_PERF_POLICY_POWER", throttle_counters,
     "otherwise the reasons are integrated"},
    {"performance metrics", "nvmlGpmQueryDeviceSupport", performance_metrics,
     "Hopper and newer, from driver 520"},
    {"memory errors", "nvmlDeviceGetEccMode", ecc, "only on boards with ECC memory, if ECC is enabled"},
    {"events", "nvmlDeviceGetSupportedEventTypes", events, "without them no XID is counted"},
};

SourceReport report_of(NvmlCaller& gpu, const Source& source) {
  const ReadStatus status = source.probe(gpu);
  const std::string_view remedy = status == ReadStatus::ok       ? ""
                                  : status == ReadStatus::denied ? "allow gpumeter's user to read it"
                                                                 : source.missing;
  return {std::string(source.what), std::string(source.where), status, std::string(remedy)};
}

SourceReport library_report(const std::string& library, const NvmlSession& session) {
  const std::string missing = session.missing();
  return {"library", library, ReadStatus::ok, missing.empty() ? "" : "it has no " + missing};
}

}  // namespace

std::optional<DeviceInfo> identify(NvmlCaller& gpu, unsigned index) {
  DeviceInfo info;
  info.uuid = text_of<&F::nvmlDeviceGetUUID>(gpu);
  if (info.uuid.empty()) return std::nullopt;
  info.vendor = "nvidia";
  info.model = text_of<&F::nvmlDeviceGetName>(gpu);
  info.pci_address = pci_address(gpu);
  info.serial = text_of<&F::nvmlDeviceGetSerial>(gpu);
  info.driver = "nvidia";
  info.driver_version = driver_version(gpu);
  info.vbios_version = text_of<&F::nvmlDeviceGetVbiosVersion>(gpu);
  info.firmware_version = firmware_version(gpu);
  if (const auto architecture = number_of<&F::nvmlDeviceGetArchitecture>(gpu))
    info.architecture = architecture_name(*architecture);
  const Facts facts = peak_facts(gpu);
  if (facts.cc_major > 0)
    info.compute_capability = std::to_string(facts.cc_major) + "." + std::to_string(facts.cc_minor);
  info.vendor_index = std::to_string(index);
  info.minor = text(number_of<&F::nvmlDeviceGetMinorNumber>(gpu));
  info.compute_units = multiprocessors(facts);
  info.memory_numa_node = memory_numa_node(gpu);
  info.linked_to = link_peers(gpu);
  info.partitioning = fingerprint(mig_instances(gpu));
  return gpu.is_lost() ? std::nullopt : std::optional(info);
}

// NVML initializes other GPUs while it searches for the UUID (nvml.h at nvmlDeviceGetHandleByUUID), so a lost
// GPU among them can fail the call. The GPUs are then tried one by one, as with a library that lacks the
// call.
std::optional<NvmlCaller> find_gpu(const std::shared_ptr<NvmlSession>& session, const std::string& uuid) {
  NvmlCaller system(session, nullptr);
  nvml::Device handle = nullptr;
  if (system.has<&F::nvmlDeviceGetHandleByUUID>()) {
    const unsigned result = session->functions().nvmlDeviceGetHandleByUUID(uuid.c_str(), &handle);
    if (result == nvml::kSuccess) return NvmlCaller(session, handle);
    if (result == nvml::kNotFound) return std::nullopt;
  }
  unsigned count = 0;
  if (system.call_plain<&F::nvmlDeviceGetCount_v2>(&count) != nvml::kSuccess) return std::nullopt;
  for (unsigned i = 0; i < count; ++i) {
    if (session->functions().nvmlDeviceGetHandleByIndex_v2(i, &handle) != nvml::kSuccess) continue;
    NvmlCaller gpu(session, handle);
    if (text_of<&F::nvmlDeviceGetUUID>(gpu) == uuid) return gpu;
  }
  return std::nullopt;
}

Facts peak_facts(NvmlCaller& gpu) {
  constexpr double kMega = 1e6;
  Facts facts{};
  facts.name = text_of<&F::nvmlDeviceGetName>(gpu);
  nvml::PciInfo bus{};
  if (gpu.call<&F::nvmlDeviceGetPciInfo_v3>(&bus) == nvml::kSuccess) facts.device_id = bus.device_id >> 16;
  gpu.call<&F::nvmlDeviceGetCudaComputeCapability>(&facts.cc_major, &facts.cc_minor);
  facts.cores = number_of<&F::nvmlDeviceGetNumGpuCores>(gpu).value_or(0);
  facts.bus_width_bits = number_of<&F::nvmlDeviceGetMemoryBusWidth>(gpu).value_or(0);
  unsigned megahertz = 0;
  if (gpu.call<&F::nvmlDeviceGetMaxClockInfo>(unsigned{nvml::kClockSm}, &megahertz) == nvml::kSuccess)
    facts.max_sm_clock_hertz = megahertz * kMega;
  if (gpu.call<&F::nvmlDeviceGetMaxClockInfo>(unsigned{nvml::kClockMemory}, &megahertz) == nvml::kSuccess)
    facts.max_memory_clock_hertz = megahertz * kMega;
  return facts;
}

std::vector<SourceReport> sources_of_gpu(const std::string& library, const DeviceInfo& info) {
  const Result<std::shared_ptr<NvmlSession>> session = NvmlSession::shared(library);
  if (!session) return {{"library", library, ReadStatus::failed, session.error().message()}};
  std::vector<SourceReport> reports = {library_report(library, **session)};
  std::optional<NvmlCaller> gpu = find_gpu(*session, info.uuid);
  for (const Source& source : kSources) {
    if (gpu) reports.push_back(report_of(*gpu, source));
  }
  return reports;
}

}  // namespace gpumeter::nvidia
