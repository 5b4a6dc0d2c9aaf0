#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "collectors/attribution/names/name_book.hpp"

/// The parts of Kubernetes' messages that names and allocations need. The decoders accept any bytes, skip
/// fields that they do not know, and return an Error for bytes that are no protobuf. Texts are as received:
/// not yet label values. Any thread.
namespace gpumeter::kubelet {

/// A device that a device plugin or a DRA driver gave to a container.
struct GivenDevice {
  std::string resource;  ///< of a device plugin: "nvidia.com/gpu"; of DRA: "claim:NAME/REQUEST", or empty
  std::string id;        ///< of a device plugin: its device id; of DRA: the device's name
  std::string driver{};  ///< of DRA: "gpu.nvidia.com"; empty: a device plugin

  bool operator==(const GivenDevice&) const = default;
};

struct Container {
  std::string name;
  std::string id{};  ///< 64 hexadecimal digits; empty: not started, or the source does not say
  std::vector<GivenDevice> devices{};

  bool operator==(const Container&) const = default;
};

struct Pod {
  std::string ns;  ///< its namespace
  std::string name;
  std::string uid{};          ///< empty: the source does not say
  std::string config_hash{};  ///< of a static pod: the uid in the path of its control group
  std::string owner_kind{};   ///< of the controller; Deployment in place of its ReplicaSet
  std::string owner{};
  std::vector<std::pair<std::string, std::string>> labels{};  ///< those of the allow-list
  std::optional<std::chrono::seconds> started{};              ///< since 1970
  bool has_ended = false;               ///< phase Succeeded or Failed: it holds no device
  std::vector<Container> containers{};  ///< including sidecars and ephemeral ones

  bool operator==(const Pod&) const = default;
};

/// Decodes k8s.io.api.core.v1.Pod (k8s.io/api/core/v1/generated.proto). `labels`: the allow-list.
Result<Pod> decode_pod(std::string_view bytes, const std::vector<std::string>& labels);

/// The Pods API of the kubelet, since 1.35 (pkg/kubelet/apis/pods/v1alpha1/api.proto). The views point into
/// `bytes`.
struct PodEvent {
  enum class Type : int { unspecified = 0, added = 1, modified = 2, deleted = 3, initial_sync_complete = 4 };
  Type type = Type::unspecified;
  std::string_view pod{};  ///< serialised
};
Result<PodEvent> decode_pod_event(std::string_view bytes);
Result<std::vector<std::string_view>> decode_pod_list(std::string_view bytes);

/// ListPodResourcesResponse (pkg/kubelet/apis/podresources/v1/api.proto): pods with devices, without uids.
Result<std::vector<Pod>> decode_pod_resources(std::string_view bytes);

/// ListContainersResponse of the container runtime (cri-api pkg/apis/runtime/v1/api.proto). Containers
/// without the kubelet's labels are skipped.
Result<std::vector<Pod>> decode_cri_containers(std::string_view bytes);

/// ListContainersRequest for running containers.
std::string cri_running_containers();

/// Returns the PCI address of a DRM card, such as "card1"; nullopt: there is no such card.
using CardAddress = std::function<std::optional<std::string>(std::string_view card)>;

/// Reads the link <sysfs>/class/drm/CARD/device.
CardAddress card_addresses(std::string sysfs);

/// The GPU of a device id, by the conventions of the device plugins of NVIDIA, GKE, AMD and Intel and of
/// NVIDIA's DRA driver. nullopt: no GPU, a device for monitoring, which
/// is not use, or an id that the node cannot resolve. Any thread; may call `address_of`.
std::optional<workloads::DeviceSelector> selector_of(const GivenDevice& device,
                                                     const CardAddress& address_of);

/// The names that the kubelet gives to the logs of containers (pkg/kubelet/kuberuntime/legacy.go and
/// helpers.go): the links <folder>/containers/POD_NAMESPACE_CONTAINER-ID.log and the folders
/// <folder>/pods/NAMESPACE_POD_UID. Reads names and links only, no log; needs no permission beyond listing
/// the two folders. Pods whose name occurs with several uids, as a StatefulSet's while the old log is kept,
/// come with the newest first. Returns an Error if neither folder can be listed. Any thread; may hang on a
/// slow disk.
Result<std::vector<Pod>> read_log_names(const std::string& folder);

/// The label of gpu_workload_info for a pod's label: `k8s_label_` and the name, in which `_` replaces every
/// character that a label of Prometheus cannot have.
std::string label_name(std::string_view pod_label);

/// Adds the devices of pod-resources, which knows pods by namespace and name only. Pods that `pods` lacks are
/// appended without a uid.
void add_devices(std::vector<Pod>& pods, const std::vector<Pod>& resources);

/// Returns true if a container of any pod has devices.
bool has_devices(const std::vector<Pod>& pods) noexcept;

/// The labels k8s_namespace, k8s_pod, k8s_container, k8s_owner_kind, k8s_owner and k8s_label_*, by the pod's
/// uid and by the container's id, and the devices of the pods that have not ended. The workload of an
/// allocation is that of the pod's control group, or "NAMESPACE/NAME" if no source says the uid.
workloads::Names names_of(const std::vector<Pod>& pods, const CardAddress& address_of);

}  // namespace gpumeter::kubelet
