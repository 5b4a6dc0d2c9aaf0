#include "programs/commands/bundle/nvml_answers.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "base/bounded_calls.hpp"
#include "programs/commands/bundle/nvml_asked.hpp"

// The keys are those of tests/fakes/nvml/README.md, as paths with dots.

namespace gpumeter::bundle {
namespace {

using namespace nvidia;  // NOLINT(google-build-using-namespace): NVML's names, in this file alone

constexpr auto kPatience = std::chrono::seconds(10);
// NVML asks for 100 ms at least between two samples.
constexpr auto kBetweenSamples = std::chrono::milliseconds(200);
// The driver's samples of processes are about this far apart; no call returns the time.
constexpr std::string_view kProcessPeriod = "{period_ms: 167}";
constexpr unsigned kFields = 303;   // NVML_FI_MAX of header 13.3.29
constexpr unsigned kMetrics = 333;  // NVML_GPM_METRIC_MAX
constexpr unsigned kPortion = 32;   // of metrics: old libraries refuse a longer list than they know
constexpr unsigned kRoom = 4096;    // for samples and processes

#define NVML(name, ...) ask<&F::name>(#name, __VA_ARGS__)
#define NVML_PLAIN(name, ...) ask_plain<&F::name>(#name, __VA_ARGS__)
// NOLINTBEGIN(bugprone-macro-parentheses): the name of a template takes none
#define ROW(ask, name, keys) \
  { #name, keys, ask<&F::name> }
#define PARTS(name, keys, ...) \
  { #name, keys, parts<&F::name, __VA_ARGS__> }
// NOLINTEND(bugprone-macro-parentheses)
using A = nvml::DeviceAttributes;
using B = nvml::BankRemapperStatus;
using H = nvml::RowRemapperHistogram;
using M = nvml::Memory;
using M2 = nvml::MemoryV2;
using S = nvml::SramErrors;

// Where two rows have a key, the former is the newer call.
// clang-format off
constexpr Row kRows[] = {
    ROW(identity, nvmlDeviceGetUUID, "uuid"),
    ROW(identity, nvmlDeviceGetSerial, "serial"),
    ROW(text, nvmlDeviceGetName, "name"),
    ROW(text, nvmlDeviceGetVbiosVersion, "vbios"),
    ROW(text, nvmlDeviceGetInforomImageVersion, "inforom"),
    ROW(text, nvmlDeviceGetBoardPartNumber, "board_part_number"),
    ROW(numbers, nvmlDeviceGetBrand, "brand"),
    ROW(numbers, nvmlDeviceGetBoardId, "board_id"),
    ROW(numbers, nvmlDeviceGetMultiGpuBoard, "multi_gpu_board"),
    ROW(numbers, nvmlDeviceGetMinorNumber, "minor"),
    ROW(numbers, nvmlDeviceGetArchitecture, "architecture"),
    ROW(numbers, nvmlDeviceGetNumGpuCores, "cores"),
    ROW(numbers, nvmlDeviceGetMemoryBusWidth, "memory_bus_width"),
    ROW(numbers, nvmlDeviceGetNumaNodeId, "numa_node"),
    ROW(numbers, nvmlDeviceGetModuleId, "module_id"),
    ROW(numbers, nvmlDeviceGetVirtualizationMode, "virtualization"),
    ROW(numbers, nvmlDeviceGetPersistenceMode, "modes.persistence"),
    ROW(numbers, nvmlDeviceGetEccMode, "modes.ecc modes.ecc_pending"),
    ROW(numbers, nvmlDeviceGetMigMode, "mig.mode mig.mode_pending"),
    ROW(numbers, nvmlDeviceGetComputeMode, "modes.compute"),
    ROW(numbers, nvmlDeviceGetDisplayActive, "modes.display_active"),
    ROW(numbers, nvmlDeviceGetAccountingMode, "modes.accounting"),
    PARTS(nvmlDeviceGetAddressingMode, "modes.addressing", &nvml::AddressingMode::mode),
    PARTS(nvmlDeviceGetC2cModeInfoV, "modes.c2c", &nvml::C2cMode::is_enabled),
    PARTS(nvmlDeviceGetCapabilities, "capabilities", &nvml::Capabilities::mask),
    PARTS(nvmlDeviceGetPciInfoExt, "pci.base_class pci.sub_class", &nvml::PciInfoExt::base_class, &nvml::PciInfoExt::sub_class),
    PARTS(nvmlDeviceGetUtilizationRates, "utilization.gpu utilization.memory", &nvml::Utilization::gpu, &nvml::Utilization::memory),
    ROW(numbers, nvmlDeviceGetEncoderUtilization, "engines.encoder engines.period_us"),
    ROW(numbers, nvmlDeviceGetDecoderUtilization, "engines.decoder engines.period_us"),
    ROW(numbers, nvmlDeviceGetJpgUtilization, "engines.jpeg engines.period_us"),
    ROW(numbers, nvmlDeviceGetOfaUtilization, "engines.ofa engines.period_us"),
    PARTS(nvmlDeviceGetMemoryInfo_v2, "memory.total memory.reserved memory.free memory.used", &M2::total, &M2::reserved, &M2::free, &M2::used),
    PARTS(nvmlDeviceGetMemoryInfo, "memory.total memory.free memory.used", &M::total, &M::free, &M::used),
    PARTS(nvmlDeviceGetBAR1MemoryInfo, "bar1.total bar1.free bar1.used", &nvml::Bar1Memory::total, &nvml::Bar1Memory::free, &nvml::Bar1Memory::used),
    PARTS(nvmlDeviceGetConfComputeProtectedMemoryUsage, "protected_memory.total protected_memory.free protected_memory.used", &M::total, &M::free, &M::used),
    ROW(numbers, nvmlDeviceGetEncoderStats, "encoder.sessions encoder.frames_per_second encoder.latency_usec"),
    PARTS(nvmlDeviceGetFBCStats, "capture.sessions capture.frames_per_second capture.latency_usec", &nvml::CaptureStats::sessions,
          &nvml::CaptureStats::frames_per_second, &nvml::CaptureStats::latency_usec),
    ROW(numbers, nvmlDeviceGetPowerUsage, "power.draw"),
    ROW(numbers, nvmlDeviceGetTotalEnergyConsumption, "power.energy"),
    ROW(numbers, nvmlDeviceGetEnforcedPowerLimit, "power.limit"),
    ROW(numbers, nvmlDeviceGetPowerManagementDefaultLimit, "power.default_limit"),
    ROW(numbers, nvmlDeviceGetPowerManagementLimitConstraints, "power.min_limit power.max_limit"),
    PARTS(nvmlDeviceGetTemperatureV, "temperature.gpu", &nvml::Temperature::celsius),
    ROW(indexed, nvmlDeviceGetTemperature, "temperature.gpu"),
    ROW(indexed, nvmlDeviceGetTemperatureThreshold,
        "temperature.thresholds.shutdown temperature.thresholds.slowdown temperature.thresholds.memory_max temperature.thresholds.gpu_max "
        "temperature.thresholds.acoustic_min temperature.thresholds.acoustic_current temperature.thresholds.acoustic_max "
        "temperature.thresholds.gps_current"),
    PARTS(nvmlDeviceGetMarginTemperature, "temperature.margin", &nvml::MarginTemperature::celsius),
    ROW(indexed, nvmlDeviceGetClockInfo, "clocks.graphics clocks.sm clocks.memory clocks.video"),
    ROW(indexed, nvmlDeviceGetMaxClockInfo, "clocks.max.graphics clocks.max.sm clocks.max.memory clocks.max.video"),
    ROW(indexed, nvmlDeviceGetMaxCustomerBoostClock, "clocks.customer_boost"),
    ROW(numbers, nvmlDeviceGetPerformanceState, "clocks.pstate"),
    ROW(numbers, nvmlDeviceGetCurrentClocksEventReasons, "clocks.reasons"),
    ROW(numbers, nvmlDeviceGetCurrentClocksThrottleReasons, "clocks.reasons"),
    ROW(numbers, nvmlDeviceGetSupportedClocksEventReasons, "clocks.supported_reasons"),
    ROW(numbers, nvmlDeviceGetSupportedClocksThrottleReasons, "clocks.supported_reasons"),
    PARTS(nvmlDeviceGetRowRemapperHistogram,
          "remapped_rows.banks.max remapped_rows.banks.high remapped_rows.banks.partial remapped_rows.banks.low remapped_rows.banks.none",
          &H::max, &H::high, &H::partial, &H::low, &H::none),
    PARTS(nvmlDeviceGetBankRemapperStatus_v1, "bank_remapper.active bank_remapper.inactive bank_remapper.pending bank_remapper.max bank_remapper.none",
          &B::active, &B::inactive, &B::is_pending, &B::max, &B::none),
    PARTS(nvmlDeviceGetRepairStatus, "repair.channel repair.tpc", &nvml::RepairStatus::channel_pending, &nvml::RepairStatus::tpc_pending),
    PARTS(nvmlDeviceGetUnrepairableMemoryFlag_v1, "unrepairable_memory", &nvml::UnrepairableMemory::is_unrepairable),
    PARTS(nvmlDeviceGetSramEccErrorStatus, "sram.l2 sram.sm sram.pcie sram.mcu sram.other sram.threshold_exceeded",
          &S::l2, &S::sm, &S::pcie, &S::microcontroller, &S::other, &S::is_above_threshold),
    ROW(numbers, nvmlDeviceGetPcieReplayCounter, "pcie.replays"),
    ROW(numbers, nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation"),
    ROW(numbers, nvmlDeviceGetCurrPcieLinkWidth, "pcie.width"),
    ROW(numbers, nvmlDeviceGetMaxPcieLinkGeneration, "pcie.max_generation"),
    ROW(numbers, nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.gpu_max_generation"),
    ROW(numbers, nvmlDeviceGetMaxPcieLinkWidth, "pcie.max_width"),
    ROW(numbers, nvmlDeviceGetSupportedEventTypes, "supported_events"),
    ROW(numbers, nvmlDeviceGetMaxMigDeviceCount, "mig.most"),
    ROW(numbers, nvmlDeviceGetGpuInstanceId, "gi"),
    ROW(numbers, nvmlDeviceGetComputeInstanceId, "ci"),
    PARTS(nvmlDeviceGetAttributes_v2,
          "attributes.multiprocessors attributes.copy_engines attributes.decoders attributes.encoders attributes.jpegs attributes.ofas "
          "attributes.gpu_slices attributes.compute_slices",
          &A::multiprocessors, &A::copy_engines, &A::decoders, &A::encoders, &A::jpegs, &A::ofas, &A::gpu_slices, &A::compute_slices),
    PARTS(nvmlGpmQueryDeviceSupport, "gpm.supported", &nvml::GpmSupport::is_supported),
};
// clang-format on

void ask_identity(Asked& asked) {
  nvml::PciInfo pci{};
  asked.NVML(nvmlDeviceGetPciInfo_v3, &pci);
  asked.put("pci.bus_id", json_quoted(pci.bus_id));
  asked.put_each("pci.device_id pci.subsystem_id", pci.device_id, pci.subsystem_id);
  int major = 0;
  int minor = 0;
  asked.NVML(nvmlDeviceGetCudaComputeCapability, &major, &minor);
  asked.put("compute_capability", json_quoted(shown(major) + "." + shown(minor)));
  std::array<char, 96> version{};  // NVML_GSP_FIRMWARE_VERSION_BUF_SIZE is 64
  asked.NVML(nvmlDeviceGetGspFirmwareVersion, version.data());
  asked.put("gsp_firmware", json_quoted(version.data()));
  unsigned object = 0;
  for (const char* const key : {"inforom_oem", "inforom_ecc", "inforom_power"}) {
    version = {};
    asked.NVML(nvmlDeviceGetInforomVersion, object++, version.data(),
               static_cast<unsigned>(version.size() - 1));
    asked.put(key, json_quoted(version.data()));
  }
  nvml::Pdi pdi{};
  asked.NVML(nvmlDeviceGetPdi, &pdi);
  std::snprintf(version.data(), version.size(), "0x%016lx", pdi.value);
  asked.put_identity("pdi", version.data());
  nvml::PlatformInfo platform{};
  asked.NVML(nvmlDeviceGetPlatformInfo, &platform);
  const auto* const chassis = reinterpret_cast<const char*>(platform.chassis_serial);
  asked.put_identity("platform.chassis_serial", {chassis, strnlen(chassis, sizeof platform.chassis_serial)});
  asked.put_each("platform.slot platform.tray platform.host platform.module", unsigned{platform.slot},
                 unsigned{platform.tray}, unsigned{platform.host}, unsigned{platform.module});
}

void ask_errors(Asked& asked) {
  for (const auto& [severity, severity_name] :
       {std::pair(0U, "ecc.corrected."), std::pair(1U, "ecc.uncorrected.")}) {
    for (const auto& [period, period_name] : {std::pair(0U, "volatile."), std::pair(1U, "aggregate.")}) {
      unsigned location = 0;
      for (const char* const name : {"l1", "l2", "dram", "register", "texture", "shm", "cbu", "sram"}) {
        std::uint64_t count = 0;
        asked.NVML(nvmlDeviceGetMemoryErrorCounter, severity, period, location++, &count);
        asked.put(std::string(severity_name) + period_name + name, shown(count));
      }
    }
  }
}

/// Returns the number of links.
unsigned ask_links(Asked& asked) {
  unsigned link = 0;
  for (; link < nvml::kMostLinks; ++link) {
    const std::string of = "nvlink.links." + std::to_string(link) + ".";
    unsigned value = 0;
    asked.NVML(nvmlDeviceGetNvLinkState, link, &value);
    if (is_left_out(asked.result)) break;
    asked.put(of + "state", shown(value));
    asked.NVML(nvmlDeviceGetNvLinkRemoteDeviceType, link, &value);
    asked.put(of + "remote", shown(value));
    nvml::PciInfo remote{};
    asked.NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2, link, &remote);
    asked.put(of + "remote_address", json_quoted(remote.bus_id));
    unsigned which = 0;
    for (const char* const name : {"replay", "recovery", "crc_flit", "crc_data", "ecc_data"}) {
      std::uint64_t count = 0;
      asked.NVML(nvmlDeviceGetNvLinkErrorCounter, link, which++, &count);
      asked.put(of + "errors." + name, shown(count));
    }
  }
  asked.result = nvml::kSuccess;
  if (link > 0) asked.put("nvlink.count", shown(link));
  return link;
}

/// Every field of every scope: links have those below their number, sensors of power the first three.
void ask_fields(Asked& asked, unsigned links) {
  constexpr const char* kTypes[] = {"double", "uint", "ulong", "ulonglong", "longlong", "int", "ushort"};
  std::map<unsigned, std::pair<std::string, std::vector<std::string>>> fields;  // type and scopes, by id
  std::vector<unsigned> scopes = {nvml::kAllLinks};
  for (unsigned scope = 0; scope < std::max(links, 3U); ++scope) scopes.push_back(scope);
  for (const unsigned scope : scopes) {
    std::vector<nvml::FieldValue> values(kFields - 1);
    for (unsigned i = 0; i < values.size(); ++i) values[i] = {.field = i + 1, .scope = scope};
    if (!asked.NVML(nvmlDeviceGetFieldValues, static_cast<int>(values.size()), values.data())) continue;
    for (const nvml::FieldValue& each : values) {
      const auto type = static_cast<std::size_t>(each.type);
      const bool is_given = each.result == nvml::kSuccess && type < std::size(kTypes);
      if (!is_given && (each.result == nvml::kSuccess || is_left_out(each.result))) continue;
      auto& [type_name, texts] = fields[each.field];
      if (is_given) type_name = kTypes[type];
      texts.push_back((scope == nvml::kAllLinks ? "all" : std::to_string(scope)) + ": " +
                      (is_given ? shown(each.type, each.value) : error_value(each.result)));
    }
  }
  asked.result = nvml::kSuccess;
  for (const auto& [id, field] : fields)
    asked.put("fields." + std::to_string(id),
              map_of({{"type", field.first}, {"scopes", options::listed('{', field.second, '}')}}));
}

void ask_fabric(Asked& asked) {
  nvml::FabricInfoV3 info{};
  asked.NVML(nvmlDeviceGetGpuFabricInfoV, &info);
  const bool is_former = asked.result == nvml::kArgumentVersionMismatch;
  if (is_former) info.version = nvml::FabricInfoV3::kFormerVersion;
  if (is_former) asked.NVML(nvmlDeviceGetGpuFabricInfoV, &info);
  asked.put_each("fabric.state fabric.status fabric.clique fabric.health_mask", unsigned{info.state},
                 info.status, info.clique, info.health_mask);
  if (!is_former) asked.put_each("fabric.health_summary", unsigned{info.health_summary});
  asked.put_identity("fabric.cluster_uuid", uuid_text(info.cluster_uuid));
}

void ask_fans(Asked& asked) {
  unsigned count = 0;
  unsigned percent = 0;
  std::vector<std::string> fans;
  if (!asked.NVML(nvmlDeviceGetNumFans, &count) && asked.NVML(nvmlDeviceGetFanSpeed, &percent))
    fans.push_back(map_of({{"percent", shown(percent)}}));
  for (unsigned fan = 0; fan < std::min(count, 64U); ++fan) {
    nvml::FanSpeed speed{};
    speed.fan = fan;
    const std::string rpm = asked.NVML(nvmlDeviceGetFanSpeedRPM, &speed) ? shown(speed.rpm) : "";
    const bool has_percent = asked.NVML(nvmlDeviceGetFanSpeed_v2, fan, &percent);
    fans.push_back(map_of({{"percent", has_percent ? shown(percent) : ""}, {"rpm", rpm}}));
  }
  asked.result = nvml::kSuccess;
  if (!fans.empty()) asked.put("fans", list_of(fans));
}

void ask_licence(Asked& asked) {
  nvml::LicensableFeatures all{};
  if (!asked.NVML(nvmlDeviceGetGridLicensableFeatures_v4, &all)) return;
  std::vector<std::string> features;
  for (const nvml::LicensableFeature& each : std::span(all.features).first(std::min(all.count, 3U))) {
    const std::string expiry = map_of({{"status", shown(unsigned{each.expiry_status})},
                                       {"year", shown(each.expiry_year)},
                                       {"month", shown(each.expiry_month)},
                                       {"day", shown(each.expiry_day)},
                                       {"hour", shown(each.expiry_hour)},
                                       {"minute", shown(each.expiry_minute)},
                                       {"second", shown(each.expiry_second)}});
    features.push_back(map_of({{"code", shown(each.code)},
                               {"state", shown(each.state)},
                               {"enabled", shown(each.enabled)},
                               {"product", json_quoted(each.product)},
                               {"expiry", expiry}}));
  }
  asked.put_each("licence.supported", all.is_supported);
  asked.put("licence.features", list_of(features));
}

/// pid -> percent.
using Shares = std::map<unsigned, unsigned>;

Shares ask_shares(Asked& asked) {
  std::vector<nvml::ProcessUtilizationInfo> infos(kRoom);
  nvml::ProcessesUtilization query{};
  query.count = kRoom;
  query.samples = infos.data();
  Shares shares;
  if (asked.NVML(nvmlDeviceGetProcessesUtilizationInfo, &query)) {
    for (const auto& each : std::span(infos).first(std::min(query.count, kRoom))) shares[each.pid] = each.sm;
  } else if (asked.result != nvml::kNotFound) {
    std::vector<nvml::ProcessUtilization> former(kRoom);
    unsigned count = kRoom;
    if (!asked.NVML(nvmlDeviceGetProcessUtilization, former.data(), &count, std::uint64_t{0})) count = 0;
    for (const auto& each : std::span(former).first(std::min(count, kRoom))) shares[each.pid] = each.sm;
  }
  if (asked.result == nvml::kNotFound) asked.result = nvml::kSuccess;  // no process at this time
  asked.put("processes.samples", std::string(kProcessPeriod));
  return shares;
}

template <auto Function>
void processes(Asked& asked, const char* call, const char* key, Shares& shares) {
  std::vector<std::byte> bytes(kRoom * sizeof(nvml::WideProcessInfo), kUntouched);
  unsigned count = kRoom;
  if (!asked.ask<Function>(call, &count, static_cast<void*>(bytes.data()))) count = 0;
  const std::size_t stride = stride_of(bytes, count);
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < count && stride != 0; ++i) {
    nvml::ProcessInfo info{};
    std::memcpy(&info, bytes.data() + i * stride, sizeof info);
    const auto share = shares.extract(info.pid);
    const auto unless = [](auto nothing, auto value) { return value == nothing ? "" : shown(value); };
    entries.push_back(map_of({{"pid", shown(info.pid)},
                              {"memory", unless(nvml::kValueNotAvailable, info.used_memory)},
                              {"gi", unless(nvml::kNoInstance, info.gpu_instance)},
                              {"ci", unless(nvml::kNoInstance, info.compute_instance)},
                              {"sm", share ? shown(share.mapped()) : ""}}));
  }
  asked.put(key, list_of(entries));
}

void ask_processes(Asked& asked) {
  Shares shares = ask_shares(asked);
#define LIST(name, key) processes<&F::name>(asked, #name, key, shares)
  LIST(nvmlDeviceGetComputeRunningProcesses_v3, "processes.compute");
  LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "processes.graphics");
  LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "processes.mps");
#undef LIST
}

/// The driver's buffers. A buffer's samples are the means of periods of one length.
void ask_samples(Asked& asked) {
  unsigned buffer = 0;
  for (const char* const name : {"power", "gpu", "memory", "encoder", "decoder", "sm_clock", "memory_clock",
                                 "module_power", "jpeg", "ofa"}) {
    std::vector<nvml::BufferSample> samples(kRoom);
    nvml::ValueType type{};
    unsigned count = kRoom;
    const bool is_given =
        asked.NVML(nvmlDeviceGetSamples, buffer++, std::uint64_t{0}, &type, &count, samples.data());
    if (asked.result != nvml::kNotFound && (!is_given || count < 2 || count > kRoom)) continue;
    if (!is_given) count = 0;
    const auto time = count == 0 ? 0 : samples[count - 1].timestamp - samples[0].timestamp;
    const double period = count == 0 ? 20 : static_cast<double>(time) / 1e3 / (count - 1);
    std::vector<std::string> steps;
    for (unsigned i = 0; i < count; ++i)
      steps.push_back(list_of({shown(i * period / 1e3), shown(type, samples[i].value)}));
    asked.result = nvml::kSuccess;
    asked.put(std::string("samples.") + name,
              map_of({{"period_ms", shown(period)},
                      {"capacity", shown(count)},
                      {"value", count == 0 ? "0" : map_of({{"steps", list_of(steps)}})}}));
  }
}

void ask_metrics(Asked& asked, Asked& to, nvml::GpmSample first, nvml::GpmSample second, unsigned from) {
  const auto get = std::make_unique<nvml::GpmMetricsGet>();
  get->count = std::min(kPortion, kMetrics - from);
  get->first = first;
  get->second = second;
  for (unsigned i = 0; i < get->count; ++i) get->metrics[i].id = from + i;
  if (!asked.NVML_PLAIN(nvmlGpmMetricsGet, get.get())) return;
  for (const nvml::GpmMetric& each : std::span(get->metrics).first(get->count)) {
    to.result = each.result;
    to.put_each("gpm.metrics." + std::to_string(each.id), each.value);
  }
}

/// `take`: fills a sample of the device or of an instance; `to`: whose metrics these are.
template <class Take>
void ask_gpm(Asked& asked, Asked& to, Take take) {
  std::array<nvml::GpmSample, 2> samples{};
  for (nvml::GpmSample& each : samples) {
    if (!asked.NVML_PLAIN(nvmlGpmSampleAlloc, &each)) each = nullptr;
  }
  const bool has_both = samples[0] != nullptr && samples[1] != nullptr;
  if (has_both && take(samples[0])) {
    std::this_thread::sleep_for(kBetweenSamples);
    const bool is_taken = take(samples[1]);
    for (unsigned from = 1; is_taken && from < kMetrics; from += kPortion)
      ask_metrics(asked, to, samples[0], samples[1], from);
  }
  for (nvml::GpmSample each : samples) {
    if (each != nullptr) asked.NVML_PLAIN(nvmlGpmSampleFree, each);
  }
}

void ask_vgpus(Asked& asked) {
  std::vector<nvml::Vgpu> ids(kRoom);
  unsigned count = kRoom;
  if (!asked.NVML(nvmlDeviceGetActiveVgpus, &count, ids.data())) return;
  std::vector<nvml::VgpuUtilization> samples(kRoom);
  nvml::VgpusUtilization query{};
  query.count = kRoom;
  query.samples = samples.data();
  if (!asked.NVML(nvmlDeviceGetVgpuInstancesUtilizationInfo, &query)) query.count = 0;
  if (asked.result == nvml::kNotFound) asked.result = nvml::kSuccess;
  asked.put("vgpus.samples", std::string(kProcessPeriod));
  std::vector<std::string> list;
  for (const nvml::Vgpu id : std::span(ids).first(std::min(count, kRoom))) {
    std::array<char, 128> vm{};
    unsigned type = 0;
    std::uint64_t memory = 0;
    const auto size = static_cast<unsigned>(vm.size());
    if (asked.NVML_PLAIN(nvmlVgpuInstanceGetVmID, id, vm.data(), size, &type))
      asked.answers.identities.emplace_back(vm.data());
    const bool has_memory = asked.NVML_PLAIN(nvmlVgpuInstanceGetFbUsage, id, &memory);
    const auto used = std::ranges::find(samples.begin(), samples.begin() + std::min(query.count, kRoom), id,
                                        &nvml::VgpuUtilization::vgpu);
    const bool has_used = used != samples.begin() + std::min(query.count, kRoom);
    list.push_back(map_of({{"id", shown(id)},
                           {"vm", vm[0] == '\0' ? "" : json_quoted(vm.data())},
                           {"memory", has_memory ? shown(memory) : ""},
                           {"sm", has_used ? shown(query.type, used->sm) : ""}}));
  }
  asked.result = nvml::kSuccess;
  asked.put("vgpus.active", list_of(list));
}

/// Whether the driver takes a registration for operational events, which ends at once.
void ask_operational(Asked& asked) {
  nvml::EventSet set = nullptr;
  if (!asked.NVML_PLAIN(nvmlEventSetCreate, &set)) return;
  nvml::OperationalEventConfig config{};
  text_of<&F::nvmlDeviceGetUUID>(asked.gpu).copy(config.uuid, sizeof config.uuid - 1);
  config.min_log_level = nvml::kNoticeLevel;
  asked.NVML_PLAIN(nvmlEventSetRegisterGpuOperationalEvents_v1, set, &config);
  asked.put("operational_events", "yes");
  asked.NVML_PLAIN(nvmlEventSetFree, set);
}

/// Asks for what devices and instances have.
void ask_all(Asked& asked) {
  for (const Row& row : kRows) row.ask(asked, row);
  nvml::DeviceAttributes attributes{};
  asked.NVML(nvmlDeviceGetAttributes_v2, &attributes);
  asked.put("attributes.memory", shown(attributes.memory_mib) + " MiB");
  ask_identity(asked);
  ask_errors(asked);
  ask_fields(asked, ask_links(asked));
  ask_fabric(asked);
  ask_fans(asked);
  ask_licence(asked);
  ask_processes(asked);
  ask_samples(asked);
}

void ask_instances(Asked& asked) {
  unsigned most = 0;
  if (!asked.NVML(nvmlDeviceGetMaxMigDeviceCount, &most)) return;
  for (unsigned index = 0; index < std::min(most, 64U); ++index) {
    nvml::Device handle = nullptr;
    if (!asked.NVML(nvmlDeviceGetMigDeviceHandleByIndex, index, &handle)) continue;
    Asked instance{NvmlCaller(asked.gpu.session(), handle), {}, asked.call};
    instance.put_each("index", index);
    ask_all(instance);
    if (const auto gi = number_of<&F::nvmlDeviceGetGpuInstanceId>(instance.gpu)) {
      nvml::GpuInstance whole = nullptr;
      nvml::GpuInstanceInfo info{};
      if (asked.NVML(nvmlDeviceGetGpuInstanceById, *gi, &whole)) {
        instance.NVML_PLAIN(nvmlGpuInstanceGetInfo, whole, &info);
        instance.put_each("gi_profile gi_start", info.profile_id, info.placement_start);
      }
      ask_gpm(asked, instance,
              [&](nvml::GpmSample sample) { return asked.NVML(nvmlGpmMigSampleGet, *gi, sample); });
    }
    std::ranges::move(instance.answers.identities, std::back_inserter(asked.answers.identities));
    asked.answers.instances.push_back(std::move(instance.answers));
  }
}

Answers answers_of(const std::shared_ptr<NvmlSession>& session, unsigned index,
                   std::shared_ptr<std::atomic<const char*>> call) {
  Asked asked{NvmlCaller(session, nullptr), {}, std::move(call)};
  nvml::Device handle = nullptr;
  asked.NVML_PLAIN(nvmlDeviceGetHandleByIndex_v2, index, &handle);
  if (asked.result != nvml::kSuccess) {
    asked.put("errors.nvmlDeviceGetHandleByIndex_v2", "");
    return std::move(asked.answers);
  }
  asked.gpu = NvmlCaller(session, handle);
  ask_all(asked);
  ask_vgpus(asked);
  ask_operational(asked);
  ask_instances(asked);
  ask_gpm(asked, asked, [&](nvml::GpmSample sample) { return asked.NVML(nvmlGpmSampleGet, sample); });
  return std::move(asked.answers);
}

/// The answers that no device gives.
std::string machine_yaml(const std::shared_ptr<NvmlSession>& session) {
  Asked asked{NvmlCaller(session, nullptr), {}, std::make_shared<std::atomic<const char*>>("")};
  std::array<char, 96> version{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is 80
  asked.NVML_PLAIN(nvmlSystemGetDriverVersion, version.data(), static_cast<unsigned>(version.size() - 1));
  asked.put("system.driver_version", json_quoted(version.data()));
  int cuda = 0;
  asked.NVML_PLAIN(nvmlSystemGetCudaDriverVersion, &cuda);
  asked.put("system.cuda_version", json_quoted(shown(cuda / 1000) + "." + shown(cuda % 1000 / 10)));
  constexpr std::string_view kKeys =
      "system.confidential.environment system.confidential.feature system.confidential.devtools "
      "system.confidential.multi_gpu";
  nvml::ConfidentialSettings settings{};
  asked.NVML_PLAIN(nvmlSystemGetConfComputeSettings, &settings);
  asked.put_each(kKeys, settings.environment, settings.feature, settings.devtools, settings.multi_gpu);
  nvml::ConfidentialState state{};
  asked.NVML_PLAIN(nvmlSystemGetConfComputeState, &state);
  asked.put_each(kKeys, state.environment, state.feature, state.devtools);
  return asked.answers.yaml("") + "missing: [" + session->missing() + "]\n";
}

}  // namespace

std::string Answers::yaml(const std::string& indent) const {
  std::string text;
  for (const auto& [key, answer] : by_key)
    text += indent + key + ": " + answer.value + "  # " + std::string(answer.call) + "\n";
  if (!instances.empty()) text += indent + "mig.instances:\n";
  for (const Answers& each : instances) text += indent + "  -\n" + each.yaml(indent + "    ");
  return text;
}

NvmlReading read_nvml(const std::string& library, const Clock& clock) {
  NvmlReading reading;
  BoundedCalls calls("bundle-nvml", kPatience, clock);
  const auto opened = calls.ask<Result<std::shared_ptr<NvmlSession>>>({library}, NvmlSession::shared);
  const auto session = opened.values.find(library);
  if (session == opened.values.end() || !session->second) {
    reading.hangs = session == opened.values.end();
    if (reading.hangs)
      reading.missing.push_back("NVML: nvmlInit_v2 of " + library + " does not return");
    else if (!is_absent(session->second.error()))
      reading.missing.push_back("NVML: " + session->second.error().message());
    return reading;
  }
  const std::shared_ptr<NvmlSession> nvml = *session->second;
  unsigned count = 0;
  nvml->functions().nvmlDeviceGetCount_v2(&count);
  reading.scenario = machine_yaml(nvml) + "devices:\n";
  const auto call = std::make_shared<std::atomic<const char*>>("");
  for (unsigned i = 0; i < count; ++i) {
    const std::string index = std::to_string(i);
    auto answered = calls.ask<Answers>(
        {index}, [nvml, i, call](const std::string&) { return answers_of(nvml, i, call); });
    const auto found = answered.values.find(index);
    if (found == answered.values.end()) {
      reading.hangs = true;
      reading.missing.push_back("NVML: GPU " + index + ": " + call->load() + " does not return");
      continue;
    }
    reading.scenario += "  -\n" + found->second.yaml("    ");
    std::ranges::move(found->second.identities, std::back_inserter(reading.identities));
  }
  return reading;
}

}  // namespace gpumeter::bundle
