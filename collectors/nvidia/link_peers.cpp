#include "collectors/nvidia/link_peers.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "collectors/nvidia/readers/field_batch.hpp"
#include "collectors/sources/host/topology.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::nvidia {
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

}  // namespace gpumeter::nvidia
