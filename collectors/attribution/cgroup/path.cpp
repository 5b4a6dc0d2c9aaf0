#include "collectors/attribution/cgroup/path.hpp"

#include "base/text.hpp"
#include "collectors/attribution/cgroup/unit_names.hpp"

namespace gpumeter::cgroup {
namespace {

/// Reads the names of a path one by one, from the root, and records the meaning of each.
class Reader {
 public:
  explicit Reader(Path& path) noexcept : path_(path) {}

  /// False: the rest of the path has no meaning for attribution.
  bool take(std::string_view name) noexcept {
    if (name == "user.slice" && inside_a_container())
      return false;  // the container's users, not the
                     // machine's
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
  Names names(below);
  for (std::string_view name = names.next(); !name.empty() && reader.take(name);) name = names.next();
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

}  // namespace gpumeter::cgroup
