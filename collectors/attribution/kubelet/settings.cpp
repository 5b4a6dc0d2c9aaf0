#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>

#include "collectors/attribution/kubelet/sources.hpp"

namespace gpumeter::kubelet {
namespace {

using options::check_optional_path;
using options::check_socket_path;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

/// Requires names of Kubernetes' labels that remain different as names of Prometheus' labels.
Complaint check_pod_labels(const std::vector<std::string>& labels) {
  constexpr std::size_t kMost = 32;
  constexpr std::size_t kLongest = 253 + 1 + 63;  // PREFIX/NAME
  if (labels.size() > kMost) return "must have at most 32 labels";
  std::map<std::string, std::string> exported;
  for (const std::string& label : labels) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
    const auto is_allowed = [&](unsigned char c) {
      return is_word(c) || (c != 0 && std::strchr("-_./", c) != nullptr);
    };
    if (label.empty() || label.size() > kLongest || !std::all_of(label.begin(), label.end(), is_allowed)) {
      return "must have names of Kubernetes' labels, such as app.kubernetes.io/name, not \"" +
             printable(label) + "\"";
    }
    std::string name = label;
    std::replace_if(
        name.begin(), name.end(), [&](unsigned char c) { return !is_word(c); }, '_');
    if (const auto [other, is_new] = exported.emplace(name, label); !is_new) {
      return "must not have both \"" + printable(other->second) + "\" and \"" + printable(label) +
             "\": both are exported as k8s_label_" + name;
    }
  }
  return std::nullopt;
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::enabled>("enabled", Reload::restart, "Name pods from local sources of the node. auto: if any of them is there; true: sources that are missing are errors."),
    option<&Settings::pods_socket>("pods_socket", Reload::restart, "Socket of the kubelet's Pods API (Kubernetes 1.37, in 1.35 and 1.36 by feature gate): names, owners, labels and devices of pods. Empty: not used.", checked<check_socket_path>),
    option<&Settings::resources_socket>("pod_resources_socket", Reload::restart, "Socket of the kubelet's pod-resources: devices of pods, if the Pods API does not list them. Empty: not used.", checked<check_socket_path>),
    option<&Settings::log_path>("log_path", Reload::restart, "Folder with `pods` and `containers`, whose file names are the names of pods, if the Pods API is missing. No log is read. Empty: not used.", checked<check_optional_path>),
    option<&Settings::cri_socket>("cri_socket", Reload::restart, "Socket of the container runtime, in place of `log_path`. Whoever may open it is root on the node. Empty: not used.", checked<check_socket_path>),
    option<&Settings::labels>("labels", Reload::restart, "Labels of pods that are exported, such as `[team, app.kubernetes.io/name]`: `k8s_label_team`, `k8s_label_app_kubernetes_io_name`. Requires the Pods API.", checked<check_pod_labels>),
};
// clang-format on

}  // namespace

constinit const options::Section kSection = options::section("kubernetes", kOptions);

}  // namespace gpumeter::kubelet
