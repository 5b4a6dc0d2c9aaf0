#include "collectors/attribution/kubelet/device_ids.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::kubelet {
namespace {

using workloads::DeviceSelector;
using By = DeviceSelector::By;
using Selector = std::optional<DeviceSelector>;

constexpr const char* kNvidia = "nvidia";

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && text.size() < 6 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view leading_digits(std::string_view text) noexcept {
  return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
}

/// NVIDIA's plugin: `GPU-UUID`, `MIG-UUID`, with `::N` for the N-th replica of a shared GPU, or the index
/// with its strategy "index". GKE's: `nvidia0`, `nvidia0/gi3`, `nvidia0/vgpu1`.
Selector nvidia(std::string_view id) {
  id = id.substr(0, id.find("::"));
  if (id.starts_with("GPU-") || id.starts_with("MIG-"))
    return DeviceSelector{By::uuid, std::string(id), kNvidia};
  if (is_digits(id)) return DeviceSelector{By::position, std::string(id), kNvidia};
  const std::string_view gpu = take_until(id, '/');
  const std::string_view part = take_until(id, '/');
  if (!gpu.starts_with(kNvidia) || !is_digits(gpu.substr(6))) return std::nullopt;
  std::string minor(gpu.substr(6));
  if (part.starts_with("gi") && is_digits(part.substr(2))) minor.append("/").append(part);
  return DeviceSelector{By::minor, std::move(minor), kNvidia};
}

/// NVIDIA's DRA driver: `gpu-MINOR`, `gpu-MINOR-mig-PROFILE-ID-START` (cmd/gpu-kubelet-plugin/mig.go of
/// kubernetes-sigs/dra-driver-nvidia-gpu). A GPU of `gpu-vfio-N` is a virtual machine's.
Selector nvidia_dra(std::string_view device) {
  constexpr std::string_view kGpu = "gpu-";
  if (!device.starts_with(kGpu)) return std::nullopt;
  device.remove_prefix(kGpu.size());
  const std::string_view minor = leading_digits(device);
  std::string_view rest = device.substr(minor.size());
  if (!is_digits(minor) || !(rest.empty() || rest.starts_with("-mig-"))) return std::nullopt;
  std::string id(minor);
  if (!rest.empty()) id.append("/").append(rest.substr(1));
  return DeviceSelector{By::minor, std::move(id), kNvidia};
}

/// `0000:19:00.0`; a partition's `amdgpu_xcp_30` is a platform device, whose GPU its name does not tell.
Selector amd(std::string_view id) {
  constexpr std::string_view kShape = "hhhh:hh:hh.h";
  const bool fits =
      id.size() == kShape.size() && std::equal(id.begin(), id.end(), kShape.begin(), [](char c, char shape) {
        return shape == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
      });
  if (!fits) return std::nullopt;
  std::string address(id);
  std::ranges::transform(address, address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return DeviceSelector{By::pci_address, std::move(address), "amd"};
}

/// `card1-0`: the second part counts the pods that share the card.
Selector intel(std::string_view id, const CardAddress& address_of) {
  const std::string_view card = id.substr(0, id.find('-'));
  if (!card.starts_with("card") || !is_digits(card.substr(4))) return std::nullopt;
  std::optional<std::string> address = address_of(card);
  if (!address) return std::nullopt;
  return DeviceSelector{By::pci_address, *std::move(address), "intel"};
}

}  // namespace

CardAddress card_addresses(std::string sysfs) {
  return [sysfs = std::move(sysfs)](std::string_view card) -> std::optional<std::string> {
    std::error_code error;
    const auto target =
        std::filesystem::read_symlink(sysfs + "/class/drm/" + std::string(card) + "/device", error);
    if (error) return std::nullopt;
    return target.filename().string();
  };
}

Selector selector_of(const GivenDevice& device, const CardAddress& address_of) {
  if (!device.driver.empty()) return device.driver == "gpu.nvidia.com" ? nvidia_dra(device.id) : std::nullopt;
  const std::string_view resource = device.resource;
  if (resource.find("monitoring") != std::string_view::npos) return std::nullopt;
  if (resource.starts_with("nvidia.com/")) return nvidia(device.id);
  if (resource.starts_with("amd.com/")) return amd(device.id);
  if (resource.starts_with("gpu.intel.com/")) return intel(device.id, address_of);
  return std::nullopt;
}

}  // namespace gpumeter::kubelet
