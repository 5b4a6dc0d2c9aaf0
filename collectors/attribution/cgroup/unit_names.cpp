#include "collectors/attribution/cgroup/unit_names.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/text.hpp"

namespace gpumeter::cgroup {
namespace {

// x: a hexadecimal digit; -: a dash, or the underscore with which systemd's cgroup driver replaces it (one
// name may have both).
constexpr std::string_view kUuid = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
constexpr std::string_view kHash = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
constexpr std::string_view kGardenHandle = "xxxxxxxx-xxxx-xxxx-xxxx-xxxx";  // Cloud Foundry's
constexpr std::size_t kContainerId = 64;                                    // a SHA-256

struct Runtime {
  std::string_view prefix;  // of the group's name
  std::string_view name;
};
constexpr Runtime kRuntimes[] = {
    {"docker", "docker"}, {"cri-containerd", "containerd"}, {"crio", "cri-o"},
    {"libpod", "podman"}, {"libpod-payload", "podman"},     {"nerdctl", "nerdctl"}};

bool is_hex(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool has_shape(std::string_view text, std::string_view shape) noexcept {
  return std::equal(text.begin(), text.end(), shape.begin(), shape.end(),
                    [](char c, char expected) { return expected == 'x' ? is_hex(c) : c == '-' || c == '_'; });
}

std::string_view without(std::string_view name, std::string_view suffix) noexcept {
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

ContainerName container(std::string_view prefix, std::string_view id) noexcept {
  if (!is_container_id(id)) return {};
  const auto* const found = std::find_if(std::begin(kRuntimes), std::end(kRuntimes),
                                         [&](const Runtime& runtime) { return runtime.prefix == prefix; });
  return found == std::end(kRuntimes) ? ContainerName{} : ContainerName{id, found->name};
}

/// Returns the UUID or hash at the start of `text`, if the rest only ends the name.
std::string_view leading_uid(std::string_view text) noexcept {
  for (const std::string_view shape : {kUuid, kHash}) {
    if (!has_shape(text.substr(0, shape.size()), shape)) continue;
    const std::string_view rest = text.substr(shape.size());
    if (rest.empty() || rest.starts_with(".slice") || rest.starts_with(':'))
      return text.substr(0, shape.size());
  }
  return {};
}

}  // namespace

std::string_view Names::next() noexcept {
  rest_.remove_prefix(std::min(rest_.find_first_not_of('/'), rest_.size()));
  return take_until(rest_, '/');
}

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_container_id(std::string_view text) noexcept {
  return text.size() == kContainerId && std::all_of(text.begin(), text.end(), is_hex);
}

bool is_slice(std::string_view name) noexcept { return !between(name, "", ".slice").empty(); }

bool is_unit(std::string_view name) noexcept {
  return !between(name, "", ".service").empty() || !between(name, "", ".scope").empty();
}

std::string_view between(std::string_view name, std::string_view prefix, std::string_view suffix) noexcept {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return {};
  if (name.size() < prefix.size() + suffix.size()) return {};
  return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
}

// A colon occurs if a runtime is configured for systemd but uses its argument as a path.
ContainerName runtime_container(std::string_view name) noexcept {
  name = without(name, ".scope");
  const std::size_t split = name.find_last_of("-:");
  if (split == std::string_view::npos) return {};
  std::string_view prefix = name.substr(0, split);
  if (name[split] == ':') prefix.remove_prefix(prefix.rfind(':') + 1);  // npos + 1 is 0
  return container(prefix, name.substr(split + 1));
}

ContainerName child_container(std::string_view parent, std::string_view name) noexcept {
  name = without(name, ".scope");
  if (parent == "docker") return container(parent, name);
  if (parent == "default") return container("nerdctl", name);
  const bool handle = has_shape(name, kGardenHandle) || has_shape(name, kUuid);
  return parent == "garden" && handle ? ContainerName{name, "garden"} : ContainerName{};
}

bool is_ecs_container(std::string_view name) noexcept {
  if (is_container_id(name)) return true;
  return has_shape(name.substr(0, kHash.size()), kHash) &&
         is_digits(between(name.substr(kHash.size()), "-", ""));
}

std::string_view pod_uid(std::string_view name) noexcept {
  if (name.starts_with("pod")) {
    if (const std::string_view uid = leading_uid(name.substr(3)); !uid.empty()) return uid;
  }
  const std::size_t last = name.rfind("-pod");
  return last == std::string_view::npos ? std::string_view() : leading_uid(name.substr(last + 4));
}

std::string_view monitor(std::string_view parent, std::string_view name) noexcept {
  const bool conmon = name.starts_with("crio-conmon-") || name.starts_with("libpod-conmon-") ||
                      (parent == "libpod_parent" && name == "conmon");
  if (conmon) return "conmon";
  return name == "lxc.monitor" || name.starts_with("lxc.monitor.") ? "lxc.monitor" : "";
}

std::string_view virtual_machine(std::string_view parent, std::string_view name) noexcept {
  for (const std::string_view prefix : {"machine-qemu\\x2d", "machine-qemu-"}) {
    if (!between(name, prefix, ".scope").empty()) return between(name, "machine-", ".scope");
  }
  if (const std::string_view machine = between(name, "", ".libvirt-qemu"); !machine.empty()) return machine;
  const std::string_view number = between(name, "", ".scope");
  return parent == "qemu.slice" && is_digits(number) ? number : std::string_view();
}

std::string_view batch_job(std::string_view first, std::string_view parent, std::string_view name) noexcept {
  if (first == "pbs_jobs.service" && (parent == "jobid" || parent == "jobs")) return name;
  if (parent == "htcondor" && name.starts_with("condor_")) {
    const std::size_t slot = name.rfind("_slot");
    return slot == std::string_view::npos ? name : name.substr(slot + 1);
  }
  std::string_view job = first == "lsf" ? between(name, "job.", "") : std::string_view();
  return take_until(job, '.');
}

std::string_view lxc_container(std::string_view parent, std::string_view name, bool at_root) noexcept {
  if (at_root && (parent == "lxc" || parent == "lxc.payload")) return name;
  if (at_root && name.starts_with("lxc.payload.")) return between(name, "lxc.payload.", "");
  return between(name, "machine-lxc\\x2d", ".scope");
}

std::optional<std::uint32_t> user_of(std::string_view name) noexcept {
  std::string_view digits = between(name, "user-", ".slice");
  if (digits.empty()) digits = between(name, "user@", ".service");
  return parse_number<std::uint32_t>(digits);
}

}  // namespace gpumeter::cgroup
