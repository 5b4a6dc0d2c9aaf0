#include "collectors/nvidia/processes/vgpus.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "collectors/nvidia/processes/room.hpp"
#include "collectors/nvidia/readers/field_batch.hpp"

namespace gpumeter::nvidia {
namespace {

/// The identity that the hypervisor gave to the machine: a UUID, or a number of the hypervisor's. Empty if
/// the driver does not report it, or not as printable text.
std::string machine_in(NvmlCaller& gpu, nvml::Vgpu vgpu) {
  std::array<char, 96> buffer{};  // NVML_DEVICE_UUID_BUFFER_SIZE is 80
  unsigned type = 0;
  const auto size = static_cast<unsigned>(buffer.size() - 1);
  if (gpu.call_plain<&F::nvmlVgpuInstanceGetVmID>(vgpu, buffer.data(), size, &type) != nvml::kSuccess)
    return "";
  std::string text = buffer.data();
  const auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
  return std::ranges::all_of(text, is_printable) ? text : std::string();
}

unsigned percent_of(const nvml::Value& value, nvml::ValueType type) noexcept {
  const double percent = number_of(value, type);
  constexpr double kUnknown = 1000;  // above 100, so that Busy drops it
  return percent >= 0 && percent < kUnknown ? static_cast<unsigned>(percent)
                                            : static_cast<unsigned>(kUnknown);
}

std::optional<double> memory_of(NvmlCaller& gpu, nvml::Vgpu vgpu) {
  std::uint64_t used = 0;
  if (gpu.call_plain<&F::nvmlVgpuInstanceGetFbUsage>(vgpu, &used) != nvml::kSuccess) return std::nullopt;
  return static_cast<double>(used);
}

}  // namespace

unsigned VgpuBusy::read_samples(NvmlCaller& caller, std::uint64_t since) {
  const unsigned result = ask_present(caller, since);
  return status_of(result) == ReadStatus::unsupported ? ask_former(caller, since) : result;
}

unsigned VgpuBusy::ask_present(NvmlCaller& caller, std::uint64_t since) {
  nvml::VgpusUtilization query{};
  const unsigned result = ask_with_room(present_, query.count, [&] {
    query.last_seen = since;
    query.samples = present_.data();
    return caller.call<&F::nvmlDeviceGetVgpuInstancesUtilizationInfo>(&query);
  });
  if (result != nvml::kSuccess) return result;
  for (std::size_t i = 0; i < std::min<std::size_t>(query.count, present_.size()); ++i)
    take_in({present_[i].vgpu, present_[i].timestamp, percent_of(present_[i].sm, query.type)}, since);
  return result;
}

unsigned VgpuBusy::ask_former(NvmlCaller& caller, std::uint64_t since) {
  auto type = nvml::ValueType::uint;
  unsigned count = 0;
  const unsigned result = ask_with_room(former_, count, [&] {
    return caller.call<&F::nvmlDeviceGetVgpuUtilization>(since, &type, &count, former_.data());
  });
  if (result != nvml::kSuccess) return result;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, former_.size()); ++i)
    take_in({former_[i].vgpu, former_[i].timestamp, percent_of(former_[i].sm, type)}, since);
  return result;
}

void Vgpus::open(NvmlCaller& gpu) {
  is_host_ = number_of<&F::nvmlDeviceGetVirtualizationMode>(gpu) == nvml::kHostVgpu;
  machines_.clear();
  busy_.open();
}

ReadStatus Vgpus::read(NvmlCaller& gpu, Nanoseconds elapsed, std::vector<DeviceProcess>& out) {
  unsigned count = 0;
  const unsigned result = ask_with_room(
      active_, count, [&] { return gpu.call<&F::nvmlDeviceGetActiveVgpus>(&count, active_.data()); });
  if (result != nvml::kSuccess) return status_of(result);
  const auto end = active_.begin() + std::min<std::ptrdiff_t>(count, std::ssize(active_));
  std::erase_if(machines_,
                [&](const auto& known) { return std::find(active_.begin(), end, known.first) == end; });
  if (count == 0) return ReadStatus::ok;
  const ReadStatus busy = busy_.read(gpu, elapsed);
  if (busy == ReadStatus::gone) return busy;
  std::for_each(active_.begin(), end, [&](nvml::Vgpu vgpu) {
    DeviceProcess& machine = out.emplace_back();
    machine.vm = machine_of(gpu, vgpu);
    machine.memory_bytes = memory_of(gpu, vgpu);
    if (busy == ReadStatus::ok) machine.busy_seconds = busy_.seconds_of(vgpu);
  });
  return gpu.is_lost() ? ReadStatus::gone : ReadStatus::ok;
}

// A machine without an identity is named by its virtual GPU.
const std::string& Vgpus::machine_of(NvmlCaller& gpu, nvml::Vgpu vgpu) {
  const auto [known, is_new] = machines_.try_emplace(vgpu);
  if (is_new) known->second = machine_in(gpu, vgpu);
  if (known->second.empty()) known->second = "vgpu-" + std::to_string(vgpu);
  return known->second;
}

}  // namespace gpumeter::nvidia
