#include "collectors/attribution/kubelet/names.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::kubelet {
namespace {

using workloads::Allocation;
using workloads::AllocationSource;
using workloads::DeviceSelector;
using workloads::NameKey;
using workloads::Names;

void add(std::vector<Label>& labels, std::string name, std::string_view value) {
  if (!value.empty()) labels.push_back({std::move(name), cgroup::label_text(value)});
}

std::vector<Label> sorted(std::vector<Label> labels) {
  std::ranges::sort(labels, {}, &Label::name);
  return labels;
}

std::vector<Label> labels_of(const Pod& pod) {
  std::vector<Label> labels;
  add(labels, "k8s_namespace", pod.ns);
  add(labels, "k8s_pod", pod.name);
  add(labels, "k8s_owner_kind", pod.owner_kind);
  add(labels, "k8s_owner", pod.owner);
  for (const auto& [name, value] : pod.labels) add(labels, label_name(name), value);
  return sorted(std::move(labels));
}

std::vector<Label> with_container(std::vector<Label> labels, const std::string& container) {
  add(labels, "k8s_container", container);
  return sorted(std::move(labels));
}

/// The kubelet names the control group of a static pod by the hash of its file.
const std::string& group_uid(const Pod& pod) noexcept {
  return pod.config_hash.empty() ? pod.uid : pod.config_hash;
}

std::string workload_of(const Pod& pod) {
  const std::string& uid = group_uid(pod);
  return cgroup::label_text(uid.empty() ? pod.ns + "/" + pod.name : uid);
}

/// The containers of a pod that share a device, and the replicas of a shared GPU, are one allocation.
struct Grant {
  AllocationSource source = AllocationSource::kubelet;
  std::string container;
  bool is_shared = false;
};

std::map<DeviceSelector, Grant> grants_of(const Pod& pod, const CardAddress& address_of) {
  std::map<DeviceSelector, Grant> grants;
  if (pod.has_ended) return grants;
  for (const Container& container : pod.containers) {
    for (const GivenDevice& device : container.devices) {
      const auto selector = selector_of(device, address_of);
      if (!selector) continue;
      const auto source = device.driver.empty() ? AllocationSource::kubelet : AllocationSource::dra;
      const auto [grant, is_new] = grants.try_emplace(*selector, Grant{source, container.name});
      if (grant->second.container != container.name) grant->second.is_shared = true;
    }
  }
  return grants;
}

void add_allocations(const Pod& pod, const std::vector<Label>& labels, const CardAddress& address_of,
                     Names& names) {
  for (const auto& [device, grant] : grants_of(pod, address_of)) {
    names.allocations.push_back({.device = device,
                                 .workload = {cgroup::Kind::pod, workload_of(pod)},
                                 .source = grant.source,
                                 .since = pod.started,
                                 .names = with_container(labels, grant.is_shared ? "" : grant.container)});
  }
}

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string label_name(std::string_view pod_label) {
  std::string name = "k8s_label_";
  for (const char c : pod_label) name += is_name_character(c) ? c : '_';
  return name;
}

void add_devices(std::vector<Pod>& pods, const std::vector<Pod>& resources) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> known;
  for (const bool has_ended : {false, true}) {  // a pod that was made again precedes the old one
    for (std::size_t i = 0; i < pods.size(); ++i) {
      if (pods[i].has_ended == has_ended) known.try_emplace({pods[i].ns, pods[i].name}, i);
    }
  }
  std::vector<Pod> strangers;
  for (const Pod& given : resources) {
    const auto found = known.find({given.ns, given.name});
    if (found == known.end()) {
      strangers.push_back(given);
      continue;
    }
    std::vector<Container>& containers = pods[found->second].containers;
    for (const Container& container : given.containers) {
      const auto own = std::ranges::find(containers, container.name, &Container::name);
      if (own == containers.end())
        containers.push_back(container);
      else
        own->devices = container.devices;
    }
  }
  std::ranges::move(strangers, std::back_inserter(pods));
}

bool has_devices(const std::vector<Pod>& pods) noexcept {
  const auto holds = [](const Container& container) { return !container.devices.empty(); };
  return std::ranges::any_of(pods,
                             [&](const Pod& pod) { return std::ranges::any_of(pod.containers, holds); });
}

Names names_of(const std::vector<Pod>& pods, const CardAddress& address_of) {
  Names names;
  for (const Pod& pod : pods) {
    const std::vector<Label> labels = labels_of(pod);
    for (const std::string& uid : {pod.uid, pod.config_hash}) {
      if (!uid.empty()) names.labels[{NameKey::By::pod_uid, uid}] = labels;
    }
    for (const Container& container : pod.containers) {
      if (container.id.empty()) continue;
      names.labels[{NameKey::By::container_id, container.id}] = with_container(labels, container.name);
    }
    add_allocations(pod, labels, address_of, names);
  }
  std::ranges::sort(names.allocations, {},
                    [](const Allocation& each) { return std::tie(each.device, each.workload); });
  return names;
}

}  // namespace gpumeter::kubelet
