#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectors/attribution/kubelet/pod.hpp"

namespace gpumeter::kubelet {

/// The names that the kubelet gives to the logs of containers (pkg/kubelet/kuberuntime/legacy.go and
/// helpers.go): the links <folder>/containers/POD_NAMESPACE_CONTAINER-ID.log and the folders
/// <folder>/pods/NAMESPACE_POD_UID. Reads names and links only, no log; needs no permission beyond listing
/// the two folders. Pods whose name occurs with several uids, as a StatefulSet's while the old log is kept,
/// come with the newest first. Returns an Error if neither folder can be listed. Any thread; may hang on a
/// slow disk.
Result<std::vector<Pod>> read_log_names(const std::string& folder);

}  // namespace gpumeter::kubelet
