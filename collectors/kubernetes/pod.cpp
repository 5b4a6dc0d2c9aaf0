#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <type_traits>
#include <utility>

#include "collectors/kubernetes/names.hpp"

namespace gpumeter::kubelet {
namespace {

/// Kubernetes' names have at most 253 bytes.
constexpr std::size_t kLongestText = 256;

/// A node runs some hundred pods, a pod some containers, and a container some devices. What is beyond these
/// limits is skipped.
constexpr std::size_t kMostPods = 4096;
constexpr std::size_t kMostContainers = 64;
constexpr std::size_t kMostDevices = 128;

/// A field that a message may have: `to` takes its bytes or its number. A field is known by its number and
/// its wire type together: a known number with another wire type is skipped.
template <class To>
struct Field {
  std::uint32_t tag;
  To to;
};

/// A text that is cut, a view of it, or a function that takes the bytes.
template <class To>
auto text(std::uint32_t number, To& to) {
  const auto take = [&to](protozero::pbf_reader& message) {
    const protozero::data_view bytes = message.get_view();
    const std::string_view view(bytes.data(), bytes.size());
    if constexpr (std::is_same_v<To, std::string>) {
      to = view.substr(0, kLongestText);
    } else if constexpr (std::is_same_v<To, std::string_view>) {
      to = view;
    } else {
      to(view);
    }
  };
  return Field<decltype(take)>{protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited),
                               take};
}

auto number(std::uint32_t number, std::uint64_t& to) {
  const auto take = [&to](protozero::pbf_reader& message) { to = message.get_uint64(); };
  return Field<decltype(take)>{protozero::tag_and_type(number, protozero::pbf_wire_type::varint), take};
}

/// Reads these fields of a message.
template <class... To>
void read(std::string_view bytes, const Field<To>&... fields) {
  protozero::pbf_reader message(bytes.data(), bytes.size());
  while (message.next()) {
    const auto take = [&message](const auto& field) {
      const bool is_it = message.tag_and_type() == field.tag;
      if (is_it) field.to(message);
      return is_it;
    };
    if (!(take(fields) || ...)) message.skip();
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
  read(bytes, text(1, entry.first), text(2, entry.second));
  return entry;
}

// A pod of the Pods API.

constexpr std::string_view kTemplateHash = "pod-template-hash";        // a ReplicaSet's label of its pods
constexpr std::string_view kConfigHash = "kubernetes.io/config.hash";  // the annotation of a static pod

struct Owner {
  std::string_view kind;
  std::string_view name;
  std::uint64_t controls = 0;  // a bool
};

Owner decode_owner(std::string_view bytes) {
  Owner owner;
  read(bytes, text(1, owner.kind), text(3, owner.name), number(6, owner.controls));
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
  const auto take_owner = [&](std::string_view entry) {
    if (const Owner owner = decode_owner(entry); owner.controls != 0) controller = owner;
  };
  read(bytes, text(1, pod.name), text(3, pod.ns), text(5, pod.uid), text(11, take_label),
       text(12, take_annotation), text(13, take_owner));
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
  const auto take_health = [&](std::string_view health) {
    std::string id;
    read(health, text(1, id));
    if (ids.size() < kMostDevices) ids.push_back(std::move(id));
  };
  read(bytes, text(1, name), text(2, take_health));
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
  const auto take_resource = [&](std::string_view status) { decode_resource_status(status, container); };
  read(bytes, text(1, container.name), text(8, container.id), text(14, take_resource));
  container.id = without_scheme(container.id);
  pod.containers.push_back(std::move(container));
}

void decode_status(std::string_view bytes, Pod& pod) {
  const auto take_phase = [&](std::string_view phase) {
    pod.has_ended = phase == "Succeeded" || phase == "Failed";
  };
  const auto take_start = [&](std::string_view time) {
    std::uint64_t seconds = 0;
    read(time, number(1, seconds));
    pod.started = std::chrono::seconds(static_cast<std::int64_t>(seconds));
  };
  const auto take_container = [&](std::string_view status) { decode_container_status(status, pod); };
  read(bytes, text(1, take_phase), text(7, take_start), text(8, take_container),
       text(10, take_container),   // init containers, which include sidecars
       text(13, take_container));  // ephemeral containers
}

// The lists of pod-resources and of the container runtime.

// ContainerDevices{resource_name=1, device_ids=2, topology=3}
void decode_devices(std::string_view bytes, Container& container) {
  std::string resource;
  std::vector<std::string> ids;
  const auto take_id = [&](std::string_view id) {
    if (ids.size() < kMostDevices) ids.emplace_back(id.substr(0, kLongestText));
  };
  read(bytes, text(1, resource), text(2, take_id));
  for (const std::string& id : ids) {
    if (container.devices.size() >= kMostDevices) return;
    container.devices.push_back({resource, id});
  }
}

// DynamicResource{claim_name=2, claim_namespace=3, claim_resources=4 ClaimResource{driver_name=2,
// pool_name=3, device_name=4}}
void decode_claim(std::string_view bytes, Container& container) {
  const auto take_resource = [&](std::string_view resource) {
    if (container.devices.size() >= kMostDevices) return;
    GivenDevice& device = container.devices.emplace_back();
    read(resource, text(2, device.driver), text(4, device.id));
    if (device.driver.empty()) device.driver = "unknown";
  };
  read(bytes, text(4, take_resource));
}

// ContainerResources{name=1, devices=2, cpu_ids=3, memory=4, dynamic_resources=5}
Container decode_container(std::string_view bytes) {
  Container container;
  const auto take_devices = [&](std::string_view devices) { decode_devices(devices, container); };
  const auto take_claim = [&](std::string_view claim) { decode_claim(claim, container); };
  read(bytes, text(1, container.name), text(2, take_devices), text(5, take_claim));
  return container;
}

// PodResources{name=1, namespace=2, containers=3, cpu_ids=4, memory=5}
Pod decode_pod_of_list(std::string_view bytes) {
  Pod pod;
  const auto take_container = [&](std::string_view container) {
    if (pod.containers.size() < kMostContainers) pod.containers.push_back(decode_container(container));
  };
  read(bytes, text(1, pod.name), text(2, pod.ns), text(3, take_container));
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
  read(bytes, text(1, container.id), text(8, take_label));
  pod.containers.push_back(std::move(container));
  return pod;
}

}  // namespace

Result<Pod> decode_pod(std::string_view bytes, const std::vector<std::string>& labels) {
  return decoded([&] {
    Pod pod;
    const auto take_metadata = [&](std::string_view metadata) { decode_metadata(metadata, labels, pod); };
    const auto take_status = [&](std::string_view status) { decode_status(status, pod); };
    read(bytes, text(1, take_metadata), text(3, take_status));
    return pod;
  });
}

Result<PodEvent> decode_pod_event(std::string_view bytes) {
  return decoded([&] {
    PodEvent event;
    std::uint64_t type = 0;
    read(bytes, number(1, type), text(2, event.pod));
    event.type = static_cast<PodEvent::Type>(type);
    return event;
  });
}

Result<std::vector<std::string_view>> decode_pod_list(std::string_view bytes) {
  return decoded([&] {
    std::vector<std::string_view> pods;
    const auto take_pod = [&](std::string_view pod) {
      if (pods.size() < kMostPods) pods.push_back(pod);
    };
    read(bytes, text(1, take_pod));
    return pods;
  });
}

Result<std::vector<Pod>> decode_pod_resources(std::string_view bytes) {
  return decoded([&] {
    std::vector<Pod> pods;
    const auto take_pod = [&](std::string_view pod) {
      if (pods.size() < kMostPods) pods.push_back(decode_pod_of_list(pod));
    };
    read(bytes, text(1, take_pod));
    return pods;
  });
}

Result<std::vector<Pod>> decode_cri_containers(std::string_view bytes) {
  return decoded([&] {
    std::map<std::string, Pod> pods;
    const auto take_container = [&](std::string_view container) {
      if (pods.size() >= kMostPods) return;
      Pod pod = decode_runtime_container(container);
      if (pod.uid.empty() || pod.name.empty()) return;
      const auto [known, is_new] = pods.try_emplace(pod.uid, pod);
      if (!is_new && known->second.containers.size() < kMostContainers) {
        known->second.containers.push_back(std::move(pod.containers.front()));
      }
    };
    read(bytes, text(1, take_container));
    std::vector<Pod> list;
    for (auto& [uid, pod] : pods) list.push_back(std::move(pod));
    return list;
  });
}

// ListContainersRequest{filter=1 {state=2 {state=1: 1 CONTAINER_RUNNING}}}
std::string cri_running_containers() { return "\x0a\x04\x12\x02\x08\x01"; }

}  // namespace gpumeter::kubelet
