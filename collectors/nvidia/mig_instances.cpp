#include "collectors/nvidia/mig_instances.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

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

}  // namespace gpumeter::nvidia
