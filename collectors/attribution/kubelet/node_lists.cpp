// The lists of pod-resources and of the container runtime.
#include <algorithm>
#include <map>
#include <utility>

#include "collectors/attribution/kubelet/pod.hpp"
#include "collectors/attribution/kubelet/protobuf.hpp"

namespace gpumeter::kubelet {
namespace {

using protozero::pbf_reader;

// ContainerDevices{resource_name=1, device_ids=2, topology=3}
void decode_devices(std::string_view bytes, Container& container) {
  std::string resource;
  std::vector<std::string> ids;
  each_field(bytes, [&](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return resource = text_of(message), true;
    if (field != text_field(2) || ids.size() >= kMostDevices) return false;
    return ids.push_back(text_of(message)), true;
  });
  for (const std::string& id : ids) {
    if (container.devices.size() >= kMostDevices) return;
    container.devices.push_back({resource, id});
  }
}

// DynamicResource{claim_name=2, claim_namespace=3, claim_resources=4 ClaimResource{driver_name=2,
// pool_name=3, device_name=4}}
void decode_claim(std::string_view bytes, Container& container) {
  each_field(bytes, [&container](std::uint32_t field, pbf_reader& message) {
    if (field != text_field(4) || container.devices.size() >= kMostDevices) return false;
    GivenDevice& device = container.devices.emplace_back();
    each_field(view_of(message), [&device](std::uint32_t inner, pbf_reader& claimed) {
      if (inner == text_field(2)) return device.driver = text_of(claimed), true;
      if (inner == text_field(4)) return device.id = text_of(claimed), true;
      return false;
    });
    if (device.driver.empty()) device.driver = "unknown";
    return true;
  });
}

// ContainerResources{name=1, devices=2, cpu_ids=3, memory=4, dynamic_resources=5}
Container decode_container(std::string_view bytes) {
  Container container;
  each_field(bytes, [&container](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return container.name = text_of(message), true;
    if (field == text_field(2)) return decode_devices(view_of(message), container), true;
    if (field == text_field(5)) return decode_claim(view_of(message), container), true;
    return false;
  });
  return container;
}

// PodResources{name=1, namespace=2, containers=3, cpu_ids=4, memory=5}
Pod decode_pod_of_list(std::string_view bytes) {
  Pod pod;
  each_field(bytes, [&pod](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return pod.name = text_of(message), true;
    if (field == text_field(2)) return pod.ns = text_of(message), true;
    if (field != text_field(3) || pod.containers.size() >= kMostContainers) return false;
    return pod.containers.push_back(decode_container(view_of(message))), true;
  });
  return pod;
}

// Container{id=1, labels=8}. The kubelet writes the labels (pkg/kubelet/types/labels.go).
Pod decode_runtime_container(std::string_view bytes) {
  Pod pod;
  Container container;
  const auto take_label = [&](std::string_view entry) {
    const auto [name, value] = map_entry(entry);
    if (name == "io.kubernetes.pod.name") pod.name = value.substr(0, kLongestText);
    if (name == "io.kubernetes.pod.namespace") pod.ns = value.substr(0, kLongestText);
    if (name == "io.kubernetes.pod.uid") pod.uid = value.substr(0, kLongestText);
    if (name == "io.kubernetes.container.name") container.name = value.substr(0, kLongestText);
  };
  each_field(bytes, [&](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return container.id = text_of(message), true;
    if (field == text_field(8)) return take_label(view_of(message)), true;
    return false;
  });
  pod.containers.push_back(std::move(container));
  return pod;
}

}  // namespace

Result<std::vector<Pod>> decode_pod_resources(std::string_view bytes) {
  return decoded([&] {
    std::vector<Pod> pods;
    each_field(bytes, [&pods](std::uint32_t field, pbf_reader& message) {
      if (field != text_field(1) || pods.size() >= kMostPods) return false;
      return pods.push_back(decode_pod_of_list(view_of(message))), true;
    });
    return pods;
  });
}

Result<std::vector<Pod>> decode_cri_containers(std::string_view bytes) {
  return decoded([&] {
    std::map<std::string, Pod> pods;
    each_field(bytes, [&pods](std::uint32_t field, pbf_reader& message) {
      if (field != text_field(1) || pods.size() >= kMostPods) return false;
      Pod pod = decode_runtime_container(view_of(message));
      if (pod.uid.empty() || pod.name.empty()) return true;
      const auto [known, is_new] = pods.try_emplace(pod.uid, pod);
      if (!is_new && known->second.containers.size() < kMostContainers) {
        known->second.containers.push_back(std::move(pod.containers.front()));
      }
      return true;
    });
    std::vector<Pod> list;
    for (auto& [uid, pod] : pods) list.push_back(std::move(pod));
    return list;
  });
}

// ListContainersRequest{filter=1 {state=2 {state=1: 1 CONTAINER_RUNNING}}}
std::string cri_running_containers() { return "\x0a\x04\x12\x02\x08\x01"; }

}  // namespace gpumeter::kubelet
