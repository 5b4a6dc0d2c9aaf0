#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/identity.hpp"
#include "collectors/nvidia/readers.hpp"
#include "collectors/table/row.hpp"

// The lines of `nvidia-smi -q` that are no readings: what the card is (gpu_inventory_info), and what it is
// set to. The full page has them. tests/fixtures/nvidia_smi.tsv lists every line with its series.
namespace gpumeter::nvidia {
namespace {

// NVML_BRAND_*, in their order.
constexpr std::string_view kBrands[] = {
    "",    "quadro", "tesla",        "nvs",        "grid",       "geforce", "titan",       "vapps",    "vpc",
    "vcs", "vws",    "cloud_gaming", "quadro_rtx", "nvidia_rtx", "nvidia",  "geforce_rtx", "titan_rtx"};

template <class Number>
std::string formatted(const char* format, Number number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

std::string brand(NvmlCaller& gpu) {
  const unsigned brand = number_of<&F::nvmlDeviceGetBrand>(gpu).value_or(0);
  return brand < std::size(kBrands) ? std::string(kBrands[brand]) : std::to_string(brand);
}

template <auto Function>
std::string number(NvmlCaller& gpu) {
  const std::optional<unsigned> answer = number_of<Function>(gpu);
  return answer ? std::to_string(*answer) : std::string();
}

std::string board_id(NvmlCaller& gpu) {
  const std::optional<unsigned> id = number_of<&F::nvmlDeviceGetBoardId>(gpu);
  return id ? formatted("0x%x", *id) : std::string();
}

std::string pdi(NvmlCaller& gpu) {
  nvml::Pdi answer{};
  const bool is_known = gpu.call<&F::nvmlDeviceGetPdi>(&answer) == nvml::kSuccess;
  return is_known ? formatted("0x%016lx", answer.value) : std::string();
}

/// NVML has the vendor in the lower half; 0 stands for a GPU without such an id.
template <unsigned nvml::PciInfo::*Id>
std::string pci_id(NvmlCaller& gpu) {
  nvml::PciInfo bus{};
  if (gpu.call<&F::nvmlDeviceGetPciInfo_v3>(&bus) != nvml::kSuccess || bus.*Id == 0) return "";
  return formatted("%04x", bus.*Id & 0xFFFF) + ":" + formatted("%04x", bus.*Id >> 16);
}

std::string pci_class(NvmlCaller& gpu) {
  nvml::PciInfoExt bus{};
  if (gpu.call<&F::nvmlDeviceGetPciInfoExt>(&bus) != nvml::kSuccess) return "";
  return formatted("%02x", bus.base_class & 0xFF) + formatted("%02x", bus.sub_class & 0xFF);
}

template <nvml::InforomObject Object>
std::string inforom(NvmlCaller& gpu) {
  std::array<char, 64> version{};  // NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE is 16
  const auto size = static_cast<unsigned>(version.size() - 1);
  const unsigned result = gpu.call<&F::nvmlDeviceGetInforomVersion>(unsigned{Object}, version.data(), size);
  return result == nvml::kSuccess ? version.data() : "";
}

/// 13010 is 13.1. The call's later version loads libcuda, which a machine or a container may lack.
std::string cuda_version(NvmlCaller& gpu) {
  int version = 0;
  if (gpu.call_plain<&F::nvmlSystemGetCudaDriverVersion>(&version) != nvml::kSuccess || version <= 0)
    return "";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

struct Fact {
  std::string_view label;
  std::string (*read)(NvmlCaller&);
};
constexpr Fact kFacts[] = {
    {"brand", brand},
    {"board_id", board_id},
    {"board_part_number", text_of<&F::nvmlDeviceGetBoardPartNumber>},
    {"multi_gpu_board", number<&F::nvmlDeviceGetMultiGpuBoard>},
    {"pdi", pdi},
    {"pci_device_id", pci_id<&nvml::PciInfo::device_id>},
    {"pci_subsystem_id", pci_id<&nvml::PciInfo::subsystem_id>},
    {"pci_class", pci_class},
    {"pcie_max_generation", number<&F::nvmlDeviceGetGpuMaxPcieLinkGeneration>},
    {"inforom_image", text_of<&F::nvmlDeviceGetInforomImageVersion>},
    {"inforom_oem", inforom<nvml::kInforomOem>},
    {"inforom_ecc", inforom<nvml::kInforomEcc>},
    {"inforom_power", inforom<nvml::kInforomPower>},
    {"cuda_version", cuda_version},
};

/// One of the three numbers of the encoder's sessions.
Reader encoder(NvidiaContext& context, const ReadSource& source) {
  return readers::probed(context, source, [&gpu = context.gpu().caller, which = source.argument] {
    std::array<unsigned, 3> answer{};
    const unsigned result = gpu.call<&F::nvmlDeviceGetEncoderStats>(&answer[0], &answer[1], &answer[2]);
    return readers::sample_of(result, answer.at(which));
  });
}

/// The low half of the number is a value, the high half the bits of the member that have it.
template <auto Function, auto Member>
Reader bind_part_is(NvidiaContext& context, const ReadSource& source) {
  auto& answer = context.gpu().answer<Function>();
  return readers::probed(context, source, [&answer, argument = source.argument] {
    const std::uint64_t bits = answer.ask().*Member & argument >> 32;
    return readers::sample_of(answer.result(), bits == (argument & 0xFFFFFFFF) ? 1 : 0);
  });
}

/// 1 while the member of the struct that a call fills is `holds`.
template <auto Function, auto Member>
constexpr NvidiaSource part_is(std::string_view name, unsigned holds, unsigned bits = ~0U) {
  return {bind_part_is<Function, Member>, name, std::uint64_t{bits} << 32 | holds};
}

constexpr NvidiaSource addressing(unsigned holds) {
  return part_is<&F::nvmlDeviceGetAddressingMode, &nvml::AddressingMode::mode>("nvmlDeviceGetAddressingMode",
                                                                               holds);
}
constexpr NvidiaSource c2c(unsigned holds) {
  return part_is<&F::nvmlDeviceGetC2cModeInfoV, &nvml::C2cMode::is_enabled>("nvmlDeviceGetC2cModeInfoV",
                                                                            holds);
}
constexpr NvidiaSource egm(unsigned holds) {
  return part_is<&F::nvmlDeviceGetCapabilities, &nvml::Capabilities::mask>("nvmlDeviceGetCapabilities", holds,
                                                                           nvml::kCapabilityEgm);
}

constexpr Traits kMultiplier{.min = 0, .max = 10};

// clang-format off
constexpr auto kSettingRows = std::to_array<Row>({
    {&catalog::power_limit, {"limit", "requested"}, field("NVML_FI_DEV_POWER_REQUESTED_LIMIT", 192, Tier::slow), kMilli, Tier::slow, {}, kPositive},
    {&catalog::edpp_multiplier, {}, field("NVML_FI_DEV_EDPP_MULTIPLIER", 274, Tier::slow), kPercent, Tier::slow, {}, kMultiplier},
    {&catalog::clock_customer_boost, {"clock", "graphics"}, {call<&F::nvmlDeviceGetMaxCustomerBoostClock>, "nvmlDeviceGetMaxCustomerBoostClock", nvml::kClockGraphics}, kMega, Tier::slow, {}, kPositive},
    {&catalog::pcie_link_events, {"event", "replay_rollover"}, field("NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER", 95, Tier::slow), 1, Tier::slow},
    {&catalog::protected_memory_size, {}, {part<&F::nvmlDeviceGetConfComputeProtectedMemoryUsage, &nvml::Memory::total>, "nvmlDeviceGetConfComputeProtectedMemoryUsage total"}, 1, Tier::slow, {}, kPositive},
    {&catalog::protected_memory_used, {}, {part<&F::nvmlDeviceGetConfComputeProtectedMemoryUsage, &nvml::Memory::used>, "nvmlDeviceGetConfComputeProtectedMemoryUsage used"}, 1, Tier::slow, {}, kPositive},
    {&catalog::protected_memory_free, {}, {part<&F::nvmlDeviceGetConfComputeProtectedMemoryUsage, &nvml::Memory::free>, "nvmlDeviceGetConfComputeProtectedMemoryUsage free"}, 1, Tier::slow, {}, kPositive},
    {&catalog::video_sessions, {"session", "encode"}, {encoder, "nvmlDeviceGetEncoderStats sessions", 0}, 1, Tier::normal},
    {&catalog::video_frame_rate, {"session", "encode"}, {encoder, "nvmlDeviceGetEncoderStats frames", 1}, 1, Tier::normal},
    {&catalog::video_latency, {"session", "encode"}, {encoder, "nvmlDeviceGetEncoderStats latency", 2}, kMicro, Tier::normal},
    {&catalog::video_sessions, {"session", "capture"}, {part<&F::nvmlDeviceGetFBCStats, &nvml::CaptureStats::sessions>, "nvmlDeviceGetFBCStats sessions"}, 1, Tier::normal},
    {&catalog::video_frame_rate, {"session", "capture"}, {part<&F::nvmlDeviceGetFBCStats, &nvml::CaptureStats::frames_per_second>, "nvmlDeviceGetFBCStats frames"}, 1, Tier::normal},
    {&catalog::video_latency, {"session", "capture"}, {part<&F::nvmlDeviceGetFBCStats, &nvml::CaptureStats::latency_usec>, "nvmlDeviceGetFBCStats latency"}, kMicro, Tier::normal},
    {&catalog::mode, {"mode", "accounting", "state", "enabled"}, is<&F::nvmlDeviceGetAccountingMode>("nvmlDeviceGetAccountingMode", 1), 1, Tier::slow},
    {&catalog::mode, {"mode", "accounting", "state", "disabled"}, is<&F::nvmlDeviceGetAccountingMode>("nvmlDeviceGetAccountingMode", 0), 1, Tier::slow},
    {&catalog::mode, {"mode", "addressing", "state", "none"}, addressing(nvml::kAddressingModeNone), 1, Tier::slow},
    {&catalog::mode, {"mode", "addressing", "state", "hmm"}, addressing(nvml::kAddressingModeHmm), 1, Tier::slow},
    {&catalog::mode, {"mode", "addressing", "state", "ats"}, addressing(nvml::kAddressingModeAts), 1, Tier::slow},
    {&catalog::mode, {"mode", "c2c", "state", "enabled"}, c2c(1), 1, Tier::slow},
    {&catalog::mode, {"mode", "c2c", "state", "disabled"}, c2c(0), 1, Tier::slow},
    {&catalog::mode, {"mode", "egm", "state", "enabled"}, egm(nvml::kCapabilityEgm), 1, Tier::slow},
    {&catalog::mode, {"mode", "egm", "state", "disabled"}, egm(0), 1, Tier::slow},
});
// NVML_GPU_VIRTUALIZATION_MODE_*, in their order.
constexpr std::string_view kVirtualizations[] = {"none", "passthrough", "vgpu", "host_vgpu", "host_vsga"};
constexpr auto kVirtualizationRows = each_place(kVirtualizations, [](std::size_t place, std::string_view state) {
  return Row{&catalog::mode, {"mode", "virtualization", "state", state}, is<&F::nvmlDeviceGetVirtualizationMode>("nvmlDeviceGetVirtualizationMode", static_cast<unsigned>(place)), 1, Tier::slow};
});
// clang-format on
constexpr auto kRows = joined(kSettingRows, kVirtualizationRows);
static_assert(valid_table(kRows));
static_assert(std::all_of(kRows.begin(), kRows.end(), in_its_tier));

}  // namespace

std::span<const Row> setting_rows() noexcept { return kRows; }

std::vector<Label> inventory_labels(NvmlCaller& gpu) {
  std::vector<Label> labels;
  for (const Fact& fact : kFacts) {
    if (std::string answer = fact.read(gpu); !answer.empty())
      labels.push_back({std::string(fact.label), std::move(answer)});
  }
  return labels;
}

}  // namespace gpumeter::nvidia
