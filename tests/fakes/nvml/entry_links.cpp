#include <cstring>

#include "tests/fakes/nvml/call.hpp"

// PCIe, NVLink, fabric.

namespace gpumeter::fake_nvml {
namespace {

// NVML_NVLINK_ERROR_DL_*
constexpr const char* kLinkErrors[] = {"replay", "recovery", "crc_flit", "crc_data", "ecc_data"};

/// Reads `nvlink.links.3.KEY` of the link itself, otherwise `nvlink.link.KEY` of all links.
template <class Number_>
unsigned of_link(const Call& call, unsigned link, const std::string& key, Number_* out) {
  unsigned count = 0;
  if (const unsigned error = call.read("nvlink.count", &count)) return error;
  if (link >= count) return nvml::kInvalidArgument;
  const std::string own = "nvlink.links." + std::to_string(link) + "." + key;
  return call.read(call.says(own) ? own : "nvlink.link." + key, out);
}

/// Converts "0a1b2c3d-..." to its 16 bytes.
void read_uuid(const Call& call, unsigned char (&out)[16]) {
  const Value text = call.at("fabric.cluster_uuid");
  std::string digits;
  for (const char c : text.text) {
    if (c != '-') digits += c;
  }
  for (std::size_t i = 0; i < 16; ++i) {
    const std::string byte = digits.size() >= 2 * i + 2 ? digits.substr(2 * i, 2) : "00";
    out[i] = static_cast<unsigned char>(std::strtoul(byte.c_str(), nullptr, 16));
  }
}

unsigned fabric(const Call& call, nvml::FabricInfoV3& out) {
  unsigned state = 0, summary = 0;
  if (const unsigned error = call.read("fabric.state", &state)) return error;
  out.state = static_cast<unsigned char>(state);
  read_uuid(call, out.cluster_uuid);
  call.read("fabric.status", &out.status);
  call.read("fabric.clique", &out.clique);
  call.read("fabric.health_mask", &out.health_mask);
  call.read("fabric.health_summary", &summary);
  out.health_summary = static_cast<unsigned char>(summary);
  return nvml::kSuccess;
}

}  // namespace

#define NUMBER_GETTER(function, path)                                      \
  FAKE_NVML_EXPORT unsigned function(nvml::Device device, unsigned* out) { \
    return one_number(#function, device, path, out);                       \
  }

NUMBER_GETTER(nvmlDeviceGetPcieReplayCounter, "pcie.replays")
NUMBER_GETTER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation")
NUMBER_GETTER(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
NUMBER_GETTER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.max_generation")
NUMBER_GETTER(nvmlDeviceGetMaxPcieLinkWidth, "pcie.max_width")

FAKE_NVML_EXPORT unsigned nvmlDeviceGetNvLinkState(nvml::Device device, unsigned link, unsigned* out) {
  return on_device("nvmlDeviceGetNvLinkState", device,
                   [&](const Call& call) { return of_link(call, link, "state", out); });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetNvLinkRemoteDeviceType(nvml::Device device, unsigned link,
                                                              unsigned* out) {
  return on_device("nvmlDeviceGetNvLinkRemoteDeviceType", device,
                   [&](const Call& call) { return of_link(call, link, "remote", out); });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml::Device device, unsigned link,
                                                              nvml::PciInfo* out) {
  return on_device("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, [&](const Call& call) -> unsigned {
    const std::string own = "nvlink.links." + std::to_string(link) + ".remote_address";
    return call.read_address(call.says(own) ? own : "nvlink.link.remote_address", out);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetNvLinkErrorCounter(nvml::Device device, unsigned link, unsigned which,
                                                          std::uint64_t* out) {
  return on_device("nvmlDeviceGetNvLinkErrorCounter", device, [&](const Call& call) -> unsigned {
    if (which >= std::size(kLinkErrors)) return nvml::kInvalidArgument;
    return of_link(call, link, std::string("errors.") + kLinkErrors[which], out);
  });
}

/// Writes only as many bytes as the version that the caller names has.
FAKE_NVML_EXPORT unsigned nvmlDeviceGetGpuFabricInfoV(nvml::Device device, nvml::FabricInfoV3* out) {
  return on_device("nvmlDeviceGetGpuFabricInfoV", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    const unsigned newest = call.scenario().layout("fabric", 3);
    const bool second = out->version == nvml::version_of<nvml::FabricInfoV2>(2);
    const bool third = out->version == nvml::version_of<nvml::FabricInfoV3>(3) && newest >= 3;
    if (!second && !third) return nvml::kArgumentVersionMismatch;
    nvml::FabricInfoV3 info{};
    info.version = out->version;
    const unsigned error = fabric(call, info);
    if (error == nvml::kSuccess) std::memcpy(out, &info, second ? sizeof(nvml::FabricInfoV2) : sizeof info);
    return error;
  });
}

}  // namespace gpumeter::fake_nvml
