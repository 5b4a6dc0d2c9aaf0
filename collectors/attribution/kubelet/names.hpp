#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collectors/attribution/kubelet/device_ids.hpp"
#include "collectors/attribution/kubelet/pod.hpp"
#include "collectors/attribution/names/name_book.hpp"

namespace gpumeter::kubelet {

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
