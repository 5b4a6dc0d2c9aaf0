#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/kubernetes/pod.hpp"

namespace gpumeter::kubelet {

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
