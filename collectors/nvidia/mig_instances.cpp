#include "collectors/nvidia/mig_instances.hpp"

#include <algorithm>
#include <cmath>

#include "collectors/nvidia/nvml_text.hpp"

namespace gpumeter::nvidia {
namespace {

using F = NvmlFunctions;

constexpr std::string_view kMark = " MIG ";  // in "NVIDIA H100 80GB HBM3 MIG 3g.40gb"

/// "3g.40gb" of a name; a part of an instance is "1c.3g.40gb" there.
std::string profile_in(const std::string& name) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == std::string::npos) return "";
  const std::string profile = name.substr(mark + kMark.size());
  const std::size_t part = profile.find("c.");
  return part == std::string::npos ? profile : profile.substr(part + 2);
}

/// As NVIDIA names them: slices, and the memory in whole GiB.
std::string profile_of(const nvml::DeviceAttributes& instance) {
  const double gib = static_cast<double>(instance.memory_mib) / 1024;
  return std::to_string(instance.gpu_slices) + "g." + std::to_string(static_cast<int>(std::ceil(gib))) + "gb";
}

MigInstance describe(NvmlCaller instance, unsigned gpu_instance) {
  nvml::DeviceAttributes attributes{};
  const bool has_attributes = instance.call<&F::nvmlDeviceGetAttributes_v2>(&attributes) == nvml::kSuccess;
  std::string profile = profile_in(text_of<&F::nvmlDeviceGetName>(instance));
  if (profile.empty() && has_attributes) profile = profile_of(attributes);
  if (profile.empty()) profile = "mig";
  const std::string id = std::to_string(gpu_instance);
  MigInstance found{instance.device(), gpu_instance, text_of<&F::nvmlDeviceGetUUID>(instance), {}, {}};
  found.partition = {profile + ":" + id, {{"profile", profile}, {"gpu_instance", id}}, found.uuid};
  if (!found.uuid.empty()) found.partition.facts.push_back({"mig_uuid", found.uuid});
  if (has_attributes)
    found.partition.facts.push_back({"compute_units", std::to_string(attributes.multiprocessors)});
  return found;
}

}  // namespace

// Indexes have holes: NOT_FOUND is no end.
std::vector<MigInstance> mig_instances(NvmlCaller& gpu) {
  std::vector<MigInstance> found;
  unsigned mode = 0;
  unsigned pending = 0;
  unsigned most = 0;
  if (gpu.call<&F::nvmlDeviceGetMigMode>(&mode, &pending) != nvml::kSuccess || mode == 0) return found;
  if (gpu.call<&F::nvmlDeviceGetMaxMigDeviceCount>(&most) != nvml::kSuccess) return found;
  for (unsigned i = 0; i < most; ++i) {
    nvml::Device handle = nullptr;
    unsigned gpu_instance = 0;
    if (gpu.call<&F::nvmlDeviceGetMigDeviceHandleByIndex>(i, &handle) != nvml::kSuccess) continue;
    NvmlCaller instance(gpu.session(), handle);
    if (instance.call<&F::nvmlDeviceGetGpuInstanceId>(&gpu_instance) != nvml::kSuccess) continue;
    const auto known = [&](const MigInstance& other) { return other.gpu_instance == gpu_instance; };
    auto owner = std::find_if(found.begin(), found.end(), known);
    if (owner == found.end()) owner = found.insert(owner, describe(instance, gpu_instance));
    owner->compute_instances.push_back(handle);
  }
  return found;
}

std::string fingerprint(const std::vector<MigInstance>& instances) {
  std::string text;
  for (const MigInstance& instance : instances) {
    if (!text.empty()) text += ", ";
    text += instance.partition.name + "=" + instance.uuid;
  }
  return text;
}

}  // namespace gpumeter::nvidia
