#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "collectors/jobs/model/run.hpp"
#include "collectors/jobs/model/shared.hpp"

namespace gpumeter::jobs {

/// The runs of one user by the names that their processes report, and the rule that assigns a process to a
/// run. Two jobs with the same run name stay apart by their workloads. Writer thread only.
///
/// A new process joins the run of its workload. Otherwise it joins a run whose workload is unknown, or any
/// run if its own workload is unknown. Otherwise it continues a run that all processes have left and that did
/// not end with success. A process in a new container does so, but no run continues from one Slurm job to
/// another. Otherwise it starts another run, labelled NAME@WORKLOAD if the name itself is taken. A run keeps
/// its label.
class UserRuns {
 public:
  using IsGone = std::function<bool(const Member&)>;

  /// Returns the run of this name that the process is a member of; both nullptr if there is none.
  std::pair<Run*, Member*> find(const SenderId& id, std::string_view name) noexcept;
  /// Returns the run that the process joins, after removing members that are gone. Returns nullptr if the
  /// process starts a new run.
  Run* to_join(const Workload& workload, std::string_view name, const Moment& now, const IsGone& is_gone);
  /// The run's series are in `source`, with the label `user`.
  Run& add(const Workload& workload, std::string_view name, const Moment& at, Source& source,
           std::string_view user);
  /// Adds a run of an earlier process. The lines of its parts follow.
  Run& restore(SavedReader& in, Source& source, std::string_view user);
  using Place = std::multimap<std::string, Run, std::less<>>::iterator;
  /// A run without members if there is any, otherwise the one that is silent the longest; end() if there is
  /// none.
  Place least_used() noexcept;
  void remove(Place run) { runs_.erase(run); }
  /// Removes the runs that have expired.
  void expire(const Moment& now, Nanoseconds retention);

  auto begin() const noexcept { return runs_.begin(); }
  auto end() const noexcept { return runs_.end(); }
  auto begin() noexcept { return runs_.begin(); }
  auto end() noexcept { return runs_.end(); }
  bool empty() const noexcept { return runs_.empty(); }
  std::size_t size() const noexcept { return runs_.size(); }

 private:
  Run* abandoned(const Workload& workload, std::string_view name, const Moment& now, const IsGone& is_gone);
  bool is_taken(const std::string& label) const noexcept;

  std::multimap<std::string, Run, std::less<>> runs_;
};

}  // namespace gpumeter::jobs
