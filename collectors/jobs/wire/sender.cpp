#include "collectors/jobs/wire/sender.hpp"

#include <cstddef>
#include <string_view>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::jobs {
namespace {

// A process rarely moves between groups (Slurm: once, after the fork). A4 of the reference has 5 s too.
constexpr Nanoseconds kRemembered = std::chrono::seconds(5);

// mpirun over a launcher over a shell over the trainer has five generations. The bound also ends a loop,
// which can appear because pids are read one by one.
constexpr std::size_t kMostGenerations = 16;

constexpr int kParentField = 4;

std::string group_in(const std::string& text) {
  const cgroup::Path path = cgroup::most_telling_path(text);
  return path.kind == cgroup::Kind::unattributed ? std::string() : std::string(path.text);
}

bool has_one_purpose(const cgroup::Path& path) noexcept {
  switch (path.kind) {
    case cgroup::Kind::slurm_job:
    case cgroup::Kind::pod:
      return true;
    case cgroup::Kind::container:
      return path.runtime != "lxc";
    case cgroup::Kind::systemd_unit:
    case cgroup::Kind::user_unit:
      return cgroup::rank(path) > 0 && !path.unit.starts_with("user@");
    default:
      return false;
  }
}

}  // namespace

std::string workload_of_one_purpose(std::string_view group) {
  const cgroup::Path path = cgroup::read_path(group);
  if (!has_one_purpose(path)) return {};
  const cgroup::Attribution found = cgroup::attribution_of(path);
  if (found.transient) return {};
  // The unit is part of the name: the scopes of a desktop application are one workload, but separate starts.
  return std::string(cgroup::to_string(found.kind)) + " " + found.workload + " " + found.unit;
}

void ProcessKin::begin_pass(Nanoseconds now) {
  now_ = now;
  std::erase_if(entries_, [&](const auto& entry) { return now - entry.second.read_at >= kRemembered; });
}

const ProcessKin::Facts& ProcessKin::of(int pid) {
  const auto [found, is_new] = entries_.try_emplace(pid);
  Entry& entry = found->second;
  if (!is_new) return entry.facts;
  entry.read_at = now_;
  const std::string stat = sysfs::read_text(proc::path(procfs_, pid, "stat"));
  entry.facts.parent = parse_number<int>(proc::stat_field(stat, kParentField)).value_or(0);
  entry.facts.group = group_in(sysfs::read_text(proc::path(procfs_, pid, "cgroup")));
  entry.facts.workload = workload_of_one_purpose(entry.facts.group);
  return entry.facts;
}

std::vector<int> ProcessKin::ancestors_of(int pid) {
  std::vector<int> ancestors;
  for (int ancestor = of(pid).parent; ancestor > 1 && ancestors.size() < kMostGenerations;
       ancestor = of(ancestor).parent) {
    ancestors.push_back(ancestor);
  }
  return ancestors;
}

}  // namespace gpumeter::jobs
