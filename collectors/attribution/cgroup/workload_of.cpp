#include "collectors/attribution/cgroup/workload_of.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/text.hpp"
#include "collectors/attribution/cgroup/text.hpp"
#include "collectors/attribution/cgroup/unit_names.hpp"

namespace gpumeter::cgroup {
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

/// Below the unit of PBS, or below the folder of HTCondor or LSF, which is at the root or in a slice.
std::string batch_name(const Path& path) {
  const std::string_view system = path.text.find("/htcondor/") != std::string_view::npos ? "htcondor" : "lsf";
  return unescaped(path.unit.empty() ? system : path.unit) + "/" + unescaped(path.batch);
}

std::string own_name(const Path& path) {
  if (!path.batch.empty()) return batch_name(path);
  switch (path.kind) {
    case Kind::slurm_job:
      return std::string(path.slurm.id());
    case Kind::pod:
      return with_dashes(path.pod);
    case Kind::container:
      return unescaped(path.container);
    case Kind::vm:
      return without_run_number(unescaped(path.machine));
    case Kind::other:
      return group_name(path);
    case Kind::unattributed:
      return {};
    case Kind::user_unit:
      return unescaped(lasting(path.unit));
    default:
      return unescaped(path.unit);
  }
}

/// The path up to the end of the name that `part` is in; empty if `part` is no view into the path.
std::string_view up_to(std::string_view path, std::string_view part) noexcept {
  const std::size_t begin = static_cast<std::size_t>(part.data() - path.data());
  if (part.empty() || begin >= path.size()) return {};
  return path.substr(0, path.find('/', begin + part.size()));
}

/// The part of the path that names the workload.
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
      break;
  }
  if (!is_transient(path.unit)) return path.unit;
  return path.owner.empty() ? path.slice : path.owner;
}

std::string_view group_of(const Path& path) noexcept {
  return path.namespaced ? std::string_view() : up_to(path.text, naming_part(path));
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
  result.slice = label_text(unescaped(path.slice));
  result.container_id = label_text(unescaped(path.container));
  result.container_runtime = path.runtime;
  result.pod_uid = with_dashes(path.pod);
  result.slurm_job = label_text(path.slurm.job);
  result.slurm_sluid = path.slurm.sluid;
  result.sluid = decode_sluid(path.slurm.sluid);
  result.uid = path.uid;
  result.transient = is_unit_kind(path.kind) && is_transient(path.unit);
  result.deleted = path.deleted;
  result.namespaced = path.namespaced;
  return result;
}

}  // namespace gpumeter::cgroup
