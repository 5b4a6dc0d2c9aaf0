#include "collectors/kubernetes/pod.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <utility>

namespace gpumeter::kubelet {
namespace {

using protozero::pbf_reader;

// A field is known by its number and its wire type together: a known number with another wire type is
// skipped.

constexpr std::uint32_t text_field(std::uint32_t number) noexcept {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number_field(std::uint32_t number) noexcept {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}

protozero::pbf_reader reader_of(std::string_view bytes) noexcept {
  return protozero::pbf_reader(bytes.data(), bytes.size());
}

std::string_view view_of(protozero::pbf_reader& message) {
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

/// Kubernetes' names have at most 253 bytes.
constexpr std::size_t kLongestText = 256;

std::string text_of(protozero::pbf_reader& message) {
  return std::string(view_of(message).substr(0, kLongestText));
}

/// A node runs some hundred pods, a pod some containers, and a container some devices. What is beyond these
/// limits is skipped.
constexpr std::size_t kMostPods = 4096;
constexpr std::size_t kMostContainers = 64;
constexpr std::size_t kMostDevices = 128;

/// Calls `read(field, message)` for each field of a message; `read` returns false to have the field skipped.
template <class Read>
void each_field(std::string_view bytes, Read read) {
  protozero::pbf_reader message = reader_of(bytes);
  while (message.next()) {
    if (!read(message.tag_and_type(), message)) message.skip();
  }
}

/// Returns the value of `decode()`, or the Error of protozero's exception.
template <class Decode>
auto decoded(Decode decode) -> Result<decltype(decode())> {
  try {
    return decode();
  } catch (const std::exception& problem) {
    return Error(std::string("not protobuf: ") + problem.what());
  }
}

/// An entry of a map<string, string>.
std::pair<std::string_view, std::string_view> map_entry(std::string_view bytes) {
  std::pair<std::string_view, std::string_view> entry;
  each_field(bytes, [&entry](std::uint32_t field, protozero::pbf_reader& message) {
    if (field == text_field(1)) return entry.first = view_of(message), true;
    if (field == text_field(2)) return entry.second = view_of(message), true;
    return false;
  });
  return entry;
}

// A pod of the Pods API.

constexpr std::string_view kTemplateHash = "pod-template-hash";        // a ReplicaSet's label of its pods
constexpr std::string_view kConfigHash = "kubernetes.io/config.hash";  // the annotation of a static pod

struct Owner {
  std::string_view kind;
  std::string_view name;
  bool controls = false;
};

Owner decode_owner(std::string_view bytes) {
  Owner owner;
  each_field(bytes, [&owner](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return owner.kind = view_of(message), true;
    if (field == text_field(3)) return owner.name = view_of(message), true;
    // get_bool() would look at a byte that may not be there.
    if (field == number_field(6)) return owner.controls = message.get_uint64() != 0, true;
    return false;
  });
  return owner;
}

/// A Deployment names its ReplicaSets DEPLOYMENT-HASH and labels their pods with the hash.
void set_owner(Pod& pod, const Owner& owner, std::string_view template_hash) {
  pod.owner_kind = owner.kind.substr(0, kLongestText);
  pod.owner = owner.name.substr(0, kLongestText);
  const std::string suffix = "-" + std::string(template_hash);
  const bool is_deployments = owner.kind == "ReplicaSet" && !template_hash.empty() &&
                              owner.name.size() > suffix.size() && owner.name.ends_with(suffix);
  if (!is_deployments) return;
  pod.owner_kind = "Deployment";
  pod.owner.resize(pod.owner.size() - suffix.size());
}

void decode_metadata(std::string_view bytes, const std::vector<std::string>& wanted, Pod& pod) {
  Owner controller;
  std::string_view template_hash;
  const auto take_label = [&](std::string_view entry) {
    const auto [name, value] = map_entry(entry);
    if (name == kTemplateHash) template_hash = value;
    const bool is_wanted = std::ranges::find(wanted, name) != wanted.end();
    if (is_wanted && pod.labels.size() < wanted.size())
      pod.labels.emplace_back(name, value.substr(0, kLongestText));
  };
  const auto take_annotation = [&pod](std::string_view entry) {
    const auto [name, value] = map_entry(entry);
    if (name == kConfigHash) pod.config_hash = value.substr(0, kLongestText);
  };
  each_field(bytes, [&](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return pod.name = text_of(message), true;
    if (field == text_field(3)) return pod.ns = text_of(message), true;
    if (field == text_field(5)) return pod.uid = text_of(message), true;
    if (field == text_field(11)) return take_label(view_of(message)), true;
    if (field == text_field(12)) return take_annotation(view_of(message)), true;
    if (field != text_field(13)) return false;
    if (const Owner owner = decode_owner(view_of(message)); owner.controls) controller = owner;
    return true;
  });
  std::ranges::sort(pod.labels);
  set_owner(pod, controller, template_hash);
}

/// The device of a claim, as `DRIVER/POOL/DEVICE` or as the name of a CDI device,
/// `k8s.DRIVER/claim=UID-DEVICE`.
GivenDevice claimed(std::string_view resource, std::string_view id) {
  constexpr std::string_view kCdi = "k8s.";
  constexpr std::size_t kUidAndDash = 37;
  const std::size_t slash = id.find('/');
  if (slash == std::string_view::npos) return {std::string(resource), std::string(id), "unknown"};
  std::string_view driver = id.substr(0, slash);
  std::string_view device = id.substr(id.rfind('/') + 1);
  if (const std::size_t equals = device.find('='); equals != std::string_view::npos) {
    if (driver.starts_with(kCdi)) driver.remove_prefix(kCdi.size());
    device.remove_prefix(std::min(device.size(), equals + 1 + kUidAndDash));
  }
  return {std::string(resource), std::string(device), std::string(driver)};
}

/// ResourceStatus{name=1, resources=2 ResourceHealth{resourceID=1}} of Kubernetes 1.31 and later.
void decode_resource_status(std::string_view bytes, Container& container) {
  std::string name;
  std::vector<std::string> ids;
  each_field(bytes, [&](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return name = text_of(message), true;
    if (field != text_field(2)) return false;
    each_field(view_of(message), [&ids](std::uint32_t inner, pbf_reader& health) {
      if (inner != text_field(1) || ids.size() >= kMostDevices) return false;
      return ids.push_back(text_of(health)), true;
    });
    return true;
  });
  for (const std::string& id : ids) {
    if (container.devices.size() >= kMostDevices) return;
    const bool is_claim = name.starts_with("claim:");
    container.devices.push_back(is_claim ? claimed(name, id) : GivenDevice{name, id});
  }
}

/// `containerd://ID`, `cri-o://ID`.
std::string without_scheme(const std::string& id) {
  const std::size_t end = id.find("://");
  return end == std::string::npos ? id : id.substr(end + 3);
}

void decode_container_status(std::string_view bytes, Pod& pod) {
  if (pod.containers.size() >= kMostContainers) return;
  Container container;
  each_field(bytes, [&container](std::uint32_t field, pbf_reader& message) {
    if (field == text_field(1)) return container.name = text_of(message), true;
    if (field == text_field(8)) return container.id = without_scheme(text_of(message)), true;
    if (field != text_field(14)) return false;
    return decode_resource_status(view_of(message), container), true;
  });
  pod.containers.push_back(std::move(container));
}

std::chrono::seconds decode_time(std::string_view bytes) {
  std::int64_t seconds = 0;
  each_field(bytes, [&seconds](std::uint32_t field, pbf_reader& message) {
    if (field != number_field(1)) return false;
    return seconds = message.get_int64(), true;
  });
  return std::chrono::seconds(seconds);
}

void decode_status(std::string_view bytes, Pod& pod) {
  each_field(bytes, [&pod](std::uint32_t field, pbf_reader& message) {
    switch (field) {
      case text_field(1): {
        const std::string_view phase = view_of(message);
        pod.has_ended = phase == "Succeeded" || phase == "Failed";
        return true;
      }
      case text_field(7):
        pod.started = decode_time(view_of(message));
        return true;
      case text_field(8):   // containers
      case text_field(10):  // init containers, which include sidecars
      case text_field(13):  // ephemeral containers
        decode_container_status(view_of(message), pod);
        return true;
      default:
        return false;
    }
  });
}

// The lists of pod-resources and of the container runtime.

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

Result<Pod> decode_pod(std::string_view bytes, const std::vector<std::string>& labels) {
  return decoded([&] {
    Pod pod;
    each_field(bytes, [&](std::uint32_t field, pbf_reader& message) {
      if (field == text_field(1)) return decode_metadata(view_of(message), labels, pod), true;
      if (field == text_field(3)) return decode_status(view_of(message), pod), true;
      return false;
    });
    return pod;
  });
}

Result<PodEvent> decode_pod_event(std::string_view bytes) {
  return decoded([&] {
    PodEvent event;
    each_field(bytes, [&event](std::uint32_t field, pbf_reader& message) {
      if (field == number_field(1)) return event.type = PodEvent::Type(message.get_enum()), true;
      if (field == text_field(2)) return event.pod = view_of(message), true;
      return false;
    });
    return event;
  });
}

Result<std::vector<std::string_view>> decode_pod_list(std::string_view bytes) {
  return decoded([&] {
    std::vector<std::string_view> pods;
    each_field(bytes, [&pods](std::uint32_t field, pbf_reader& message) {
      if (field != text_field(1) || pods.size() >= kMostPods) return false;
      return pods.push_back(view_of(message)), true;
    });
    return pods;
  });
}

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
