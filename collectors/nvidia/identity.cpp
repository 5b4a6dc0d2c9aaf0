#include "collectors/nvidia/identity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "collectors/nvidia/sources.hpp"
#include "collectors/sources/host.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr std::string_view kMark = " MIG ";  // in "NVIDIA H100 80GB HBM3 MIG 3g.40gb"

/// The "3g.40gb" in a name; the name of a part of an instance has "1c.3g.40gb".
std::string profile_in(const std::string& name) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == std::string::npos) return "";
  const std::string profile = name.substr(mark + kMark.size());
  const std::size_t part = profile.find("c.");
  return part == std::string::npos ? profile : profile.substr(part + 2);
}

/// NVIDIA's form of the name: slices, then the memory in whole GiB.
std::string profile_of(const nvml::DeviceAttributes& instance) {
  const double gib = static_cast<double>(instance.memory_mib) / 1024;
  return std::to_string(instance.gpu_slices) + "g." + std::to_string(static_cast<int>(std::ceil(gib))) + "gb";
}

/// A compute instance: the object behind a MIG handle.
struct ComputeInstance {
  nvml::Device handle;
  std::optional<unsigned> id;
  std::string uuid, name;
  std::optional<nvml::DeviceAttributes> attributes;
};

ComputeInstance compute_instance(NvmlCaller& caller) {
  nvml::DeviceAttributes attributes{};
  ComputeInstance found{caller.device(),
                        number_of<&F::nvmlDeviceGetComputeInstanceId>(caller),
                        text_of<&F::nvmlDeviceGetUUID>(caller),
                        text_of<&F::nvmlDeviceGetName>(caller),
                        {}};
  if (caller.call<&F::nvmlDeviceGetAttributes_v2>(&attributes) == nvml::kSuccess)
    found.attributes = attributes;
  return found;
}

/// The labels of one of several compute instances of a GPU instance.
std::vector<Label> part_of(const ComputeInstance& compute) {
  std::vector<Label> labels;
  if (compute.id) labels.push_back({"compute_instance", std::to_string(*compute.id)});
  if (!compute.uuid.empty()) labels.push_back({"mig_uuid", compute.uuid});
  if (compute.attributes) {
    labels.push_back({"compute_units", std::to_string(compute.attributes->multiprocessors)});
  }
  return labels;
}

using PartsByInstance = std::vector<std::pair<unsigned, std::vector<ComputeInstance>>>;

std::vector<ComputeInstance>& parts_of(unsigned gpu_instance, PartsByInstance& all) {
  const auto is_it = [&](const auto& other) { return other.first == gpu_instance; };
  auto found = std::find_if(all.begin(), all.end(), is_it);
  if (found == all.end()) found = all.insert(found, {gpu_instance, {}});
  return found->second;
}

/// The profile's number and the first memory slice, by which NVIDIA's DRA driver names the instance. NVML
/// gives them to privileged callers only, so a failure is no trouble of the GPU's.
std::vector<Label> place_of(const NvmlCaller& gpu, unsigned gpu_instance) {
  NvmlCaller caller(gpu.session(), gpu.device());
  nvml::GpuInstance instance = nullptr;
  nvml::GpuInstanceInfo info{};
  if (caller.call<&F::nvmlDeviceGetGpuInstanceById>(gpu_instance, &instance) != nvml::kSuccess) return {};
  if (caller.call_plain<&F::nvmlGpuInstanceGetInfo>(instance, &info) != nvml::kSuccess) return {};
  return {{"profile_id", std::to_string(info.profile_id)},
          {"placement", std::to_string(info.placement_start)}};
}

MigInstance describe(unsigned gpu_instance, const std::vector<ComputeInstance>& parts) {
  const ComputeInstance& first = parts.front();
  std::string profile = profile_in(first.name);
  if (profile.empty() && first.attributes) profile = profile_of(*first.attributes);
  if (profile.empty()) profile = "mig";
  const std::string id = std::to_string(gpu_instance);
  MigInstance found{first.handle, gpu_instance, first.uuid, {}};
  found.partition = {profile + ":" + id, {{"profile", profile}, {"gpu_instance", id}}, found.uuid};
  std::vector<Label>& facts = found.partition.facts;
  const bool is_whole = parts.size() == 1;
  if (is_whole && !first.uuid.empty()) facts.push_back({"mig_uuid", first.uuid});
  if (is_whole && first.attributes) {
    facts.push_back({"compute_units", std::to_string(first.attributes->multiprocessors)});
  }
  for (const ComputeInstance& part : parts) {
    found.compute_instances.push_back(part.handle);
    found.compute_uuids.push_back(part.uuid);
    if (part.attributes) {
      found.multiprocessors += part.attributes->multiprocessors;
      found.memory_bytes = static_cast<double>(part.attributes->memory_mib << 20);
    }
    if (!is_whole) found.partition.parts.push_back(part_of(part));
  }
  return found;
}

}  // namespace

// Indexes have gaps, so NOT_FOUND does not end the list.
std::vector<MigInstance> mig_instances(NvmlCaller& gpu) {
  unsigned mode = 0;
  unsigned pending = 0;
  unsigned most = 0;
  if (gpu.call<&F::nvmlDeviceGetMigMode>(&mode, &pending) != nvml::kSuccess || mode == 0) return {};
  if (gpu.call<&F::nvmlDeviceGetMaxMigDeviceCount>(&most) != nvml::kSuccess) return {};
  PartsByInstance parts;
  for (unsigned i = 0; i < most; ++i) {
    nvml::Device handle = nullptr;
    unsigned gpu_instance = 0;
    if (gpu.call<&F::nvmlDeviceGetMigDeviceHandleByIndex>(i, &handle) != nvml::kSuccess) continue;
    NvmlCaller instance(gpu.session(), handle);
    if (instance.call<&F::nvmlDeviceGetGpuInstanceId>(&gpu_instance) == nvml::kSuccess)
      parts_of(gpu_instance, parts).push_back(compute_instance(instance));
    gpu.share_trouble_of(instance);
  }
  std::vector<MigInstance> found;
  for (const auto& [gpu_instance, computes] : parts) {
    found.push_back(describe(gpu_instance, computes));
    std::ranges::copy(place_of(gpu, gpu_instance), std::back_inserter(found.back().partition.facts));
  }
  return found;
}

std::string fingerprint(const std::vector<MigInstance>& instances) {
  std::string text;
  for (const MigInstance& instance : instances) {
    if (!text.empty()) text += ", ";
    text += instance.partition.name + "=";
    for (std::size_t i = 0; i < instance.compute_uuids.size(); ++i)
      text += (i == 0 ? "" : "+") + instance.compute_uuids[i];
  }
  return text;
}

namespace {

bool is_printable(unsigned char byte) noexcept { return byte > ' ' && byte <= '~'; }

/// The text in a field of fixed length; empty if it holds anything but printable ASCII.
std::string text_in(std::span<const unsigned char> field) {
  const auto end = std::ranges::find(field, 0);
  return std::all_of(field.begin(), end, is_printable) ? std::string(field.begin(), end) : std::string();
}

// "For non-baseboard products, this ID would always be 0" (nvml.h at nvmlDeviceGetModuleId), so 0 says
// nothing.
std::vector<Label> module_label(NvmlCaller& gpu) {
  const unsigned module = number_of<&F::nvmlDeviceGetModuleId>(gpu).value_or(0);
  if (module == 0) return {};
  return {{"module", std::to_string(module)}};
}

}  // namespace

bool has_own_memory(NvmlCaller& gpu) {
  nvml::MemoryV2 present{};
  nvml::Memory former{};
  const unsigned first = gpu.call<&F::nvmlDeviceGetMemoryInfo_v2>(&present);
  const unsigned second = gpu.call<&F::nvmlDeviceGetMemoryInfo>(&former);
  const bool is_lacking_first = first == nvml::kNotSupported || first == nvml::kFunctionNotFound;
  return !is_lacking_first || second != nvml::kNotSupported;
}

std::vector<Label> platform_labels(NvmlCaller& gpu) {
  nvml::PlatformInfo platform{};
  if (gpu.call<&F::nvmlDeviceGetPlatformInfo>(&platform) != nvml::kSuccess) return module_label(gpu);
  std::vector<Label> labels;
  if (std::string chassis = text_in(platform.chassis_serial); !chassis.empty())
    labels.push_back({"chassis_serial", std::move(chassis)});
  labels.push_back({"slot", std::to_string(platform.slot)});
  labels.push_back({"tray", std::to_string(platform.tray)});
  labels.push_back({"host", std::to_string(platform.host)});
  labels.push_back({"module", std::to_string(platform.module)});
  return labels;
}

namespace {

constexpr unsigned kLinkCount = 91;  // NVML_FI_DEV_NVLINK_LINK_COUNT

unsigned count_links(NvmlCaller& gpu) {
  const Sample sample = read_field(gpu, kLinkCount, 0).sample;
  const bool is_count = sample.status == ReadStatus::ok && sample.value > 0;
  return is_count ? static_cast<unsigned>(std::min<double>(sample.value, nvml::kMostLinks)) : 0;
}

/// Empty if the other end is no PCI function of this machine: the driver then fails the call, or fills the
/// address with ones.
std::string address_at(NvmlCaller& gpu, unsigned link) {
  nvml::PciInfo bus{};
  if (gpu.call<&F::nvmlDeviceGetNvLinkRemotePciInfo_v2>(link, &bus) != nvml::kSuccess) return "";
  if (bus.domain > 0xFFFF'FFFEU || bus.bus > 0xFF || bus.device > 0x1F) return "";
  return pci::to_string(
      {bus.domain, static_cast<std::uint8_t>(bus.bus), static_cast<std::uint8_t>(bus.device), 0});
}

std::optional<std::string> peer_at(NvmlCaller& gpu, unsigned link) {
  unsigned type = 0;
  if (gpu.call<&F::nvmlDeviceGetNvLinkRemoteDeviceType>(link, &type) != nvml::kSuccess) return std::nullopt;
  if (type != nvml::kLinkToGpu && type != nvml::kLinkToSwitch) return std::nullopt;
  std::string address = address_at(gpu, link);
  if (type == nvml::kLinkToSwitch) return std::string(pci::kSwitchPrefix) + address;
  return address.empty() ? std::nullopt : std::optional(std::move(address));
}

}  // namespace

std::vector<std::string> link_peers(NvmlCaller& gpu) {
  std::vector<std::string> peers;
  const unsigned count = count_links(gpu);
  for (unsigned link = 0; link < count; ++link) {
    if (auto peer = peer_at(gpu, link)) peers.push_back(*std::move(peer));
  }
  std::ranges::sort(peers);
  peers.erase(std::ranges::unique(peers).begin(), peers.end());
  return peers;
}

namespace {

constexpr EnumNames<unsigned, 10> kArchitectures = {{{nvml::kKepler, "kepler"},
                                                     {nvml::kMaxwell, "maxwell"},
                                                     {nvml::kPascal, "pascal"},
                                                     {nvml::kVolta, "volta"},
                                                     {nvml::kTuring, "turing"},
                                                     {nvml::kAmpere, "ampere"},
                                                     {nvml::kAda, "ada"},
                                                     {nvml::kHopper, "hopper"},
                                                     {nvml::kBlackwell, "blackwell"},
                                                     {nvml::kRubin, "rubin"}}};

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
     "Hopper and newer, from driver 520; before, by collectors.nvidia.dcgm"},
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
    info.architecture = kArchitectures.of(*architecture);
  const Facts facts = peak_facts(gpu);
  if (facts.cc_major > 0)
    info.compute_capability = std::to_string(facts.cc_major) + "." + std::to_string(facts.cc_minor);
  info.vendor_index = std::to_string(index);
  info.minor = text(number_of<&F::nvmlDeviceGetMinorNumber>(gpu));
  info.compute_units = multiprocessors_of(facts);
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

std::optional<int> multiprocessors_of(const Facts& facts) noexcept {
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
