#include "collectors/kubernetes/names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/text.hpp"
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

// Ids of devices.

using By = DeviceSelector::By;
using Selector = std::optional<DeviceSelector>;

constexpr const char* kNvidia = "nvidia";

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && text.size() < 6 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view leading_digits(std::string_view text) noexcept {
  return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
}

/// NVIDIA's plugin: `GPU-UUID`, `MIG-UUID`, with `::N` for the N-th replica of a shared GPU, or the index
/// with its strategy "index". GKE's: `nvidia0`, `nvidia0/gi3`, `nvidia0/vgpu1`.
Selector nvidia(std::string_view id) {
  id = id.substr(0, id.find("::"));
  if (id.starts_with("GPU-") || id.starts_with("MIG-"))
    return DeviceSelector{By::uuid, std::string(id), kNvidia};
  if (is_digits(id)) return DeviceSelector{By::position, std::string(id), kNvidia};
  const std::string_view gpu = take_until(id, '/');
  const std::string_view part = take_until(id, '/');
  if (!gpu.starts_with(kNvidia) || !is_digits(gpu.substr(6))) return std::nullopt;
  std::string minor(gpu.substr(6));
  if (part.starts_with("gi") && is_digits(part.substr(2))) minor.append("/").append(part);
  return DeviceSelector{By::minor, std::move(minor), kNvidia};
}

/// NVIDIA's DRA driver: `gpu-MINOR`, `gpu-MINOR-mig-PROFILE-ID-START` (cmd/gpu-kubelet-plugin/mig.go of
/// kubernetes-sigs/dra-driver-nvidia-gpu). A GPU of `gpu-vfio-N` is a virtual machine's.
Selector nvidia_dra(std::string_view device) {
  constexpr std::string_view kGpu = "gpu-";
  if (!device.starts_with(kGpu)) return std::nullopt;
  device.remove_prefix(kGpu.size());
  const std::string_view minor = leading_digits(device);
  std::string_view rest = device.substr(minor.size());
  if (!is_digits(minor) || !(rest.empty() || rest.starts_with("-mig-"))) return std::nullopt;
  std::string id(minor);
  if (!rest.empty()) id.append("/").append(rest.substr(1));
  return DeviceSelector{By::minor, std::move(id), kNvidia};
}

/// `0000:19:00.0`; a partition's `amdgpu_xcp_30` is a platform device, whose GPU its name does not tell.
Selector amd(std::string_view id) {
  constexpr std::string_view kShape = "hhhh:hh:hh.h";
  const bool fits =
      id.size() == kShape.size() && std::equal(id.begin(), id.end(), kShape.begin(), [](char c, char shape) {
        return shape == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
      });
  if (!fits) return std::nullopt;
  std::string address(id);
  std::ranges::transform(address, address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return DeviceSelector{By::pci_address, std::move(address), "amd"};
}

/// `card1-0`: the second part counts the pods that share the card.
Selector intel(std::string_view id, const CardAddress& address_of) {
  const std::string_view card = id.substr(0, id.find('-'));
  if (!card.starts_with("card") || !is_digits(card.substr(4))) return std::nullopt;
  std::optional<std::string> address = address_of(card);
  if (!address) return std::nullopt;
  return DeviceSelector{By::pci_address, *std::move(address), "intel"};
}

// Names of logs.

constexpr std::size_t kMostNames = 16384;  // of one folder
constexpr std::size_t kIdLength = 64;

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// A pod and the time of its last change.
struct Dated {
  Pod pod;
  std::int64_t changed = 0;  // seconds since 1970
};
using Pods = std::map<std::string, Dated>;  // by uid

/// NAMESPACE_POD_UID; names of Kubernetes have no `_`.
std::optional<Pod> pod_of_folder(std::string_view name) {
  const std::string_view ns = take_until(name, '_');
  const std::string_view pod = take_until(name, '_');
  if (ns.empty() || pod.empty() || name.empty() || name.find('_') != std::string_view::npos)
    return std::nullopt;
  return Pod{.ns = std::string(ns), .name = std::string(pod), .uid = std::string(name)};
}

/// POD_NAMESPACE_CONTAINER-ID.log
std::optional<Container> container_of_link(std::string_view name) {
  constexpr std::string_view kEnd = ".log";
  take_until(name, '_');
  take_until(name, '_');
  if (!name.ends_with(kEnd) || name.size() < kEnd.size() + kIdLength + 2) return std::nullopt;
  name.remove_suffix(kEnd.size());
  const std::size_t dash = name.size() - kIdLength - 1;
  const std::string_view id = name.substr(dash + 1);
  const bool is_id = name[dash] == '-' && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!is_id) return std::nullopt;
  return Container{.name = std::string(name.substr(0, dash)), .id = std::string(id)};
}

/// The pod of a link's target, /var/log/pods/NAMESPACE_POD_UID/CONTAINER/0.log.
std::optional<Pod> pod_of_target(std::string_view target) {
  while (!target.empty()) {
    if (auto pod = pod_of_folder(take_until(target, '/'))) return pod;
  }
  return std::nullopt;
}

/// Calls `take(folder's descriptor, name)` for each entry. Returns errno, or 0.
template <class Take>
int each_entry(const std::string& path, Take take) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) return errno;
  for (std::size_t count = 0; count < kMostNames; ++count) {
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') take(::dirfd(folder.get()), entry->d_name);
  }
  return 0;
}

Dated& dated(Pods& pods, const Pod& pod, std::int64_t changed) {
  Dated& known = pods.try_emplace(pod.uid, Dated{pod, changed}).first->second;
  known.changed = std::max(known.changed, changed);
  return known;
}

std::int64_t changed_at(int folder, const char* name) noexcept {
  struct stat facts {};
  return ::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 ? facts.st_mtim.tv_sec : 0;
}

int read_folders(const std::string& path, Pods& pods) {
  return each_entry(path, [&pods](int folder, const char* name) {
    if (auto pod = pod_of_folder(name)) dated(pods, *std::move(pod), changed_at(folder, name));
  });
}

int read_links(const std::string& path, Pods& pods) {
  return each_entry(path, [&pods](int folder, const char* name) {
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlinkat(folder, name, target.data(), target.size());
    auto container = container_of_link(name);
    if (size <= 0 || !container) return;
    auto pod = pod_of_target({target.data(), static_cast<std::size_t>(size)});
    if (!pod) return;
    dated(pods, *std::move(pod), changed_at(folder, name)).pod.containers.push_back(*std::move(container));
  });
}

}  // namespace

CardAddress card_addresses(std::string sysfs) {
  return [sysfs = std::move(sysfs)](std::string_view card) -> std::optional<std::string> {
    std::error_code error;
    const auto target =
        std::filesystem::read_symlink(sysfs + "/class/drm/" + std::string(card) + "/device", error);
    if (error) return std::nullopt;
    return target.filename().string();
  };
}

Selector selector_of(const GivenDevice& device, const CardAddress& address_of) {
  if (!device.driver.empty()) return device.driver == "gpu.nvidia.com" ? nvidia_dra(device.id) : std::nullopt;
  const std::string_view resource = device.resource;
  if (resource.find("monitoring") != std::string_view::npos) return std::nullopt;
  if (resource.starts_with("nvidia.com/")) return nvidia(device.id);
  if (resource.starts_with("amd.com/")) return amd(device.id);
  if (resource.starts_with("gpu.intel.com/")) return intel(device.id, address_of);
  return std::nullopt;
}

Result<std::vector<Pod>> read_log_names(const std::string& folder) {
  Pods pods;
  const int links_error = read_links(folder + "/containers", pods);
  const int error = read_folders(folder + "/pods", pods);
  if (error != 0 && links_error != 0) return Error(folder + ": " + std::generic_category().message(error));
  std::vector<Dated> newest;
  for (auto& [uid, each] : pods) newest.push_back(std::move(each));
  std::ranges::stable_sort(newest, std::greater<>(), &Dated::changed);
  std::vector<Pod> list;
  for (Dated& each : newest) {
    std::ranges::sort(each.pod.containers, {}, &Container::id);
    list.push_back(std::move(each.pod));
  }
  return list;
}

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
