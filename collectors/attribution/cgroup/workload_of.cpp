#include "collectors/attribution/cgroup/workload_of.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::cgroup {

std::string label_text(std::string_view text) {
  const auto is_control = [](char32_t code) { return code < 0x20 || code == 0x7F; };
  return shortened(readable(text, is_control), kLongestLabel, text);
}

namespace {

// Single names in a path come first. An empty result means that the name is of another kind.

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

/// What a container's name says.
struct ContainerName {
  std::string_view id;
  std::string_view runtime;  // see Path::runtime
};

/// 64 lower-case hexadecimal digits: the ids of Docker, containerd, CRI-O and Podman.
bool is_container_id(std::string_view text) noexcept {
  return text.size() == kContainerId && std::all_of(text.begin(), text.end(), is_hex);
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

/// A service or a scope.
bool is_unit(std::string_view name) noexcept {
  return !between(name, "", ".service").empty() || !between(name, "", ".scope").empty();
}

/// docker-ID.scope, cri-containerd-ID, libpod-payload-ID, SLICE:cri-containerd:ID. A colon occurs if a
/// runtime is configured for systemd but uses its argument as a path.
ContainerName runtime_container(std::string_view name) noexcept {
  name = without(name, ".scope");
  const std::size_t split = name.find_last_of("-:");
  if (split == std::string_view::npos) return {};
  std::string_view prefix = name.substr(0, split);
  if (name[split] == ':') prefix.remove_prefix(prefix.rfind(':') + 1);  // npos + 1 is 0
  return container(prefix, name.substr(split + 1));
}

/// ID below docker, default (nerdctl's first namespace) or garden.
ContainerName child_container(std::string_view parent, std::string_view name) noexcept {
  name = without(name, ".scope");
  if (parent == "docker") return container(parent, name);
  if (parent == "default") return container("nerdctl", name);
  const bool handle = has_shape(name, kGardenHandle) || has_shape(name, kUuid);
  return parent == "garden" && handle ? ContainerName{name, "garden"} : ContainerName{};
}

/// ECS names a container by its id, or on Fargate by the task's 32 digits and a number.
bool is_ecs_container(std::string_view name) noexcept {
  if (is_container_id(name)) return true;
  return has_shape(name.substr(0, kHash.size()), kHash) &&
         is_digits(between(name.substr(kHash.size()), "-", ""));
}

/// The uid in podUID, in kubepods-burstable-podUID.slice, and in names that extend the latter.
std::string_view pod_uid(std::string_view name) noexcept {
  if (name.starts_with("pod")) {
    if (const std::string_view uid = leading_uid(name.substr(3)); !uid.empty()) return uid;
  }
  const std::size_t last = name.rfind("-pod");
  return last == std::string_view::npos ? std::string_view() : leading_uid(name.substr(last + 4));
}

/// crio-conmon-ID, libpod-conmon-ID, libpod_parent/conmon, lxc.monitor.NAME
std::string_view monitor(std::string_view parent, std::string_view name) noexcept {
  const bool conmon = name.starts_with("crio-conmon-") || name.starts_with("libpod-conmon-") ||
                      (parent == "libpod_parent" && name == "conmon");
  if (conmon) return "conmon";
  return name == "lxc.monitor" || name.starts_with("lxc.monitor.") ? "lxc.monitor" : "";
}

/// machine-qemu\x2d1\x2dNAME.scope, qemu-1-NAME.libvirt-qemu, qemu.slice/100.scope
std::string_view virtual_machine(std::string_view parent, std::string_view name) noexcept {
  for (const std::string_view prefix : {"machine-qemu\\x2d", "machine-qemu-"}) {
    if (!between(name, prefix, ".scope").empty()) return between(name, "machine-", ".scope");
  }
  if (const std::string_view machine = between(name, "", ".libvirt-qemu"); !machine.empty()) return machine;
  const std::string_view number = between(name, "", ".scope");
  return parent == "qemu.slice" && is_digits(number) ? number : std::string_view();
}

/// The job of a batch system in a folder that its daemon creates outside of users' slices: PBS's
/// pbs_jobs.service/jobid/ID (v2: jobs/ID), the slot of HTCondor's htcondor/condor_EXECUTE-FOLDER_SLOT@HOST,
/// LSF's lsf/CLUSTER/job.ID.PID.TIME. `first`: the path's first name.
std::string_view batch_job(std::string_view first, std::string_view parent, std::string_view name) noexcept {
  if (first == "pbs_jobs.service" && (parent == "jobid" || parent == "jobs")) return name;
  if (parent == "htcondor" && name.starts_with("condor_")) {
    const std::size_t slot = name.rfind("_slot");
    return slot == std::string_view::npos ? name : name.substr(slot + 1);
  }
  std::string_view job = first == "lsf" ? between(name, "job.", "") : std::string_view();
  return take_until(job, '.');
}

/// lxc/NAME and lxc.payload.NAME at the root, and libvirt's machine-lxc\x2d1\x2dNAME.scope
std::string_view lxc_container(std::string_view parent, std::string_view name, bool at_root) noexcept {
  if (at_root && (parent == "lxc" || parent == "lxc.payload")) return name;
  if (at_root && name.starts_with("lxc.payload.")) return between(name, "lxc.payload.", "");
  return between(name, "machine-lxc\\x2d", ".scope");
}

/// Reads the names of a path one by one, from the root, and records the meaning of each.
class Reader {
 public:
  explicit Reader(Path& path) noexcept : path_(path) {}

  /// False: the rest of the path has no meaning for attribution.
  bool take(std::string_view name) noexcept {
    if (name == "user.slice" && inside_a_container()) return false;  // not the machine's users
    enter_users_part(name);
    if (!take_workload(name) && !found_workload()) take_unit(name);
    if (depth_ == 0) first_ = name;
    if (path_.batch.empty() && path_.owner.empty() && depth_ <= 3)
      path_.batch = batch_job(first_, parent_, name);
    parent_ = name;
    ++depth_;
    return true;
  }

  void finish() noexcept {
    path_.kind = kind();
    const bool is_unit_itself = path_.kind == Kind::systemd_unit || path_.kind == Kind::user_unit ||
                                path_.kind == Kind::session || path_.kind == Kind::other;
    // A service around a container is kept (Podman's quadlets), but a user's manager is not.
    if (!is_unit_itself && (path_.kind != Kind::container || below_manager_)) path_.unit = {};
    if (found_workload()) path_.batch = {};
    if (path_.kind != Kind::pod) return;
    path_.slice = {};
    // A slice anywhere in the path means that systemd creates the machine's groups, though not necessarily
    // the pod's.
    path_.driver = path_.text.find(".slice") == std::string_view::npos ? "cgroupfs" : "systemd";
  }

 private:
  Kind kind() const noexcept {
    if (!path_.monitor.empty()) return Kind::other;
    if (!path_.pod.empty()) return Kind::pod;
    if (!path_.machine.empty()) return Kind::vm;
    if (!path_.container.empty()) return Kind::container;
    if (path_.unit.empty()) return depth_ == 0 ? Kind::unattributed : Kind::other;
    if (!between(path_.unit, "session-", ".scope").empty()) return Kind::session;
    return path_.owner.empty() ? Kind::systemd_unit : Kind::user_unit;
  }

  bool found_workload() const noexcept {
    return !(path_.container.empty() && path_.pod.empty() && path_.machine.empty() && path_.monitor.empty());
  }

  bool inside_a_container() const noexcept { return path_.owner.empty() && found_workload(); }

  // If a namespace hides the upper part, the path may begin with the user's slice or manager.
  void enter_users_part(std::string_view name) noexcept {
    const std::optional<std::uint32_t> user = user_of(name);
    const bool enters = path_.owner.empty() && (name == "user.slice" || (depth_ == 0 && user));
    const bool narrows = path_.owner == "user.slice" && parent_ == "user.slice" && is_slice(name);
    if (!enters && !narrows) return;
    path_.owner = name;
    path_.uid = user;
  }

  /// The innermost container and the last pod take precedence, because containers and pods can be nested
  /// (kind, Docker in LXC).
  bool take_workload(std::string_view name) noexcept {
    if (const std::string_view watcher = monitor(parent_, name); !watcher.empty()) {
      path_.pod = path_.qos = path_.container = path_.runtime = {};
      path_.monitor = watcher;
      return true;
    }
    if (const std::string_view machine = virtual_machine(parent_, name); !machine.empty()) {
      path_.machine = machine;
      return true;
    }
    const bool pod = take_pod(name);
    return take_container(name) || pod;  // a runtime that uses systemd's name as a path has both in one
  }

  bool take_pod(std::string_view name) noexcept {
    const std::string_view uid = path_.owner.empty() ? pod_uid(name) : std::string_view();
    if (uid.empty()) return false;
    path_.pod = uid;
    path_.qos = qos_of(name);
    path_.container = path_.runtime = path_.monitor = {};
    return true;
  }

  /// Finds the class in kubepods/burstable/podUID or kubepods-burstable-podUID.slice; with neither word it is
  /// guaranteed.
  std::string_view qos_of(std::string_view name) const noexcept {
    for (const std::string_view qos : {"burstable", "besteffort"}) {
      if (parent_ == qos || name.find(qos) != std::string_view::npos) return qos;
    }
    return "guaranteed";
  }

  bool take_container(std::string_view name) noexcept {
    const ContainerName found = container(name);
    if (found.id.empty()) return false;
    path_.container = found.id;
    path_.runtime = found.runtime;
    path_.monitor = {};
    return true;
  }

  ContainerName container(std::string_view name) const noexcept {
    if (const ContainerName found = runtime_container(name); !found.id.empty()) return found;
    if (const ContainerName found = child_container(parent_, name); !found.id.empty()) return found;
    const bool below_pod = !path_.pod.empty() && !pod_uid(parent_).empty();
    if (below_pod && is_container_id(name)) return {name, {}};
    if (below_ecs_ && is_ecs_container(name)) return {name, "ecs"};
    return {lxc_container(parent_, name, depth_ <= 1), "lxc"};
  }

  // A user's manager is itself a unit; the unit below the manager replaces it.
  void take_unit(std::string_view name) noexcept {
    if (depth_ == 0) below_ecs_ = name == "ecs";
    if (!path_.unit.empty() && !below_manager_) return;
    if (is_slice(name)) path_.slice = name;
    if (!is_unit(name)) return;
    path_.unit = name;
    below_manager_ = !path_.owner.empty() && name.starts_with("user@");
  }

  Path& path_;
  std::string_view first_;
  std::string_view parent_;
  int depth_ = 0;
  bool below_ecs_ = false;
  bool below_manager_ = false;
};

/// Removes the line's end and the suffix of a removed group's path (cgroups(7)).
std::string_view without_appendix(std::string_view text, bool& deleted) noexcept {
  constexpr std::string_view kDeleted = " (deleted)";
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  deleted = text.ends_with(kDeleted);
  if (deleted) text.remove_suffix(kDeleted.size());
  return text;
}

/// Removes the leading ".." of a path that is not below the reader's root.
std::string_view below_parents(std::string_view text) noexcept {
  while (text == "/.." || text.starts_with("/../")) text.remove_prefix(3);
  return text;
}

void take_slurm(const SlurmFolder& folder, Path& path) noexcept {
  path.kind = Kind::slurm_job;
  path.slurm = folder;
  if (const auto uid = parse_number<std::uint32_t>(folder.uid)) path.uid = uid;
}

}  // namespace

Path read_path(std::string_view text) noexcept {
  Path path;
  path.text = without_appendix(text, path.deleted);
  const std::string_view below = below_parents(path.text);
  path.namespaced = below.size() != path.text.size();
  if (const SlurmFolder folder = slurm_folder(below); !folder.id().empty()) {
    take_slurm(folder, path);
    return path;
  }
  Reader reader(path);
  std::string_view rest = below;
  for (std::string_view name = take_name(rest); !name.empty() && reader.take(name);) name = take_name(rest);
  reader.finish();
  return path;
}

int rank(const Path& path) noexcept {
  switch (path.kind) {
    case Kind::slurm_job:
      return 4;
    case Kind::pod:
      return 3;
    case Kind::container:
    case Kind::vm:
      return 2;
    case Kind::unattributed:
      return 0;
    default:
      return path.text == "/init.scope" ? 0 : 1;
  }
}

namespace {

constexpr std::size_t kUuidLength = 36;

struct Line {
  std::string_view controllers;  // empty: cgroup v2's
  std::string_view path;         // empty: the line is invalid
};

/// `number:controllers:path`; the path may have colons too.
Line line_of(std::string_view text) noexcept {
  const std::string_view number = take_until(text, ':');
  const std::string_view controllers = take_until(text, ':');
  return is_digits(number) && text.starts_with('/') ? Line{controllers, text} : Line{};
}

/// True if `name` is one of the comma-separated controllers.
bool has(std::string_view controllers, std::string_view name) noexcept {
  while (!controllers.empty()) {
    if (take_until(controllers, ',') == name) return true;
  }
  return false;
}

/// Preference between two equally specific hierarchies. v2 contains all processes of a unit or container. The
/// creator of a unit or container sets limits in pids and memory. Sometimes a process is in the root of every
/// hierarchy but name=systemd.
int precedence(std::string_view controllers) noexcept {
  if (controllers.empty()) return 5;
  if (has(controllers, "pids")) return 4;
  if (has(controllers, "memory")) return 3;
  if (has(controllers, "cpuacct") || has(controllers, "cpu")) return 2;
  return has(controllers, "name=systemd") ? 1 : 0;
}

/// True for units with a new name at each start: units of systemd-run, logins, and the *-spawn-UUID.scope of
/// tmux and terminals.
bool is_transient(std::string_view unit) noexcept {
  const std::string_view stem = between(unit, "", ".scope");
  const std::size_t spawned = stem.rfind("-spawn-");
  const bool has_uuid = spawned != std::string_view::npos && stem.size() - spawned == 7 + kUuidLength;
  return stem.starts_with("run-") || stem.starts_with("session-") || has_uuid;
}

/// The stable part of the name of a user's unit. For app-LAUNCHER-ID-RANDOM.scope and app-ID@RANDOM.service
/// it omits the last part (systemd's "Desktop Environment Integration"). Dashes within an ID are escaped.
std::string_view lasting(std::string_view unit) noexcept {
  const std::string_view scope = between(unit, "", ".scope");
  const std::string_view service = between(unit, "", ".service");
  if (!unit.starts_with("app-")) return unit;
  if (const std::size_t dash = scope.rfind('-'); !scope.empty() && dash > 3) return scope.substr(0, dash);
  return service.find('@') == std::string_view::npos ? unit : service.substr(0, service.find('@'));
}

/// Removes N from qemu-N-NAME, because libvirt numbers the machine's starts.
std::string without_run_number(const std::string& machine) {
  constexpr std::size_t kNumber = 5;
  if (!machine.starts_with("qemu-")) return machine;
  const std::size_t dash = std::min(machine.find('-', kNumber), machine.size());
  const bool numbered = is_digits(std::string_view(machine).substr(kNumber, dash - kNumber));
  return numbered && dash + 1 < machine.size() ? machine.substr(dash + 1) : machine;
}

/// A pod's uid as the API server spells it. systemd's names cannot contain its dashes.
std::string with_dashes(std::string_view uid) {
  std::string text(uid);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string slice_of(const Path& path) {
  if (!path.owner.empty()) return unescaped(path.owner);
  return path.slice.empty() ? "-.slice" : unescaped(path.slice);  // systemd's name of the root
}

bool is_unit_kind(Kind kind) noexcept {
  return kind == Kind::systemd_unit || kind == Kind::user_unit || kind == Kind::session;
}

/// The name of a slice of the machine or of a user; for any other group its whole path.
std::string group_name(const Path& path) {
  if (!path.monitor.empty()) return std::string(path.monitor);
  const bool is_slice = !path.slice.empty() && path.text.ends_with(path.slice);
  const bool known = is_slice && (path.owner.empty() || path.owner == path.slice);
  return unescaped(known ? path.slice : path.text);
}

/// The part of the path that names the workload, unless that is a transient unit.
std::string_view naming_part(const Path& path) noexcept {
  if (!path.batch.empty()) return path.batch;
  switch (path.kind) {
    case Kind::slurm_job:
      return path.slurm.id();
    case Kind::pod:
      return path.pod;
    case Kind::container:
      return path.container;
    case Kind::vm:
      return path.machine;
    case Kind::other:
      return path.monitor.empty() ? path.text : path.monitor;
    case Kind::unattributed:
      return {};
    default:
      return path.unit;
  }
}

/// Below the unit of PBS, or below the folder of HTCondor or LSF, which is at the root or in a slice.
std::string batch_name(const Path& path) {
  const std::string_view system = path.text.find("/htcondor/") != std::string_view::npos ? "htcondor" : "lsf";
  return unescaped(path.unit.empty() ? system : path.unit) + "/" + unescaped(path.batch);
}

std::string own_name(const Path& path) {
  if (!path.batch.empty()) return batch_name(path);
  if (path.kind == Kind::pod) return with_dashes(path.pod);
  if (path.kind == Kind::vm) return without_run_number(unescaped(path.machine));
  if (path.kind == Kind::other) return group_name(path);
  if (path.kind == Kind::user_unit) return unescaped(lasting(path.unit));
  return unescaped(naming_part(path));
}

/// The path up to the end of the name that `part` is in; empty if `part` is no view into the path.
std::string_view up_to(std::string_view path, std::string_view part) noexcept {
  const std::size_t begin = static_cast<std::size_t>(part.data() - path.data());
  if (part.empty() || begin >= path.size()) return {};
  return path.substr(0, path.find('/', begin + part.size()));
}

std::string_view group_of(const Path& path) noexcept {
  if (path.namespaced) return {};
  const bool is_by_slice = path.batch.empty() && is_unit_kind(path.kind) && is_transient(path.unit);
  const std::string_view slice = path.owner.empty() ? path.slice : path.owner;
  return up_to(path.text, is_by_slice ? slice : naming_part(path));
}

std::string workload_of(const Path& path) {
  if (is_unit_kind(path.kind) && is_transient(path.unit)) return slice_of(path);
  const bool has_owner_in_name = path.kind == Kind::other && path.monitor.empty();
  return path.owner.empty() || has_owner_in_name ? own_name(path) : slice_of(path) + "/" + own_name(path);
}

}  // namespace

Path most_telling_path(std::string_view text) noexcept {
  Path best;
  std::pair<int, int> best_order{-1, -1};
  while (!text.empty()) {
    const Line line = line_of(take_until(text, '\n'));
    if (line.path.empty()) continue;
    const Path path = read_path(line.path);
    const std::pair order{rank(path), precedence(line.controllers)};
    if (order <= best_order) continue;
    best = path;
    best_order = order;
  }
  return best;
}

Attribution attribution_of(const Path& path) {
  Attribution result;
  result.kind = path.kind;
  if (path.kind != Kind::unattributed) result.reason = Reason::none;
  if (path.kind == Kind::unattributed && !path.text.empty()) result.reason = Reason::root;
  result.workload = label_text(workload_of(path));
  result.group = group_of(path);
  result.unit = label_text(unescaped(path.unit));
  result.container_id = label_text(unescaped(path.container));
  result.container_runtime = path.runtime;
  result.pod_uid = with_dashes(path.pod);
  result.slurm_job = label_text(path.slurm.job);
  result.slurm_sluid = path.slurm.sluid;
  result.uid = path.uid;
  result.transient = is_unit_kind(path.kind) && is_transient(path.unit);
  return result;
}

}  // namespace gpumeter::cgroup
