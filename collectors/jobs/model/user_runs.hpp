#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "collectors/jobs/model/run.hpp"
#include "collectors/jobs/model/shared.hpp"

namespace gpumeter::jobs {

/// The runs of one user by the names that their processes give them, and the rule that says to which of them
/// a process belongs. Two jobs that give their runs one name stay apart by their workloads. Writer thread
/// only.
///
/// A process that is new to a run joins the one of its workload, or otherwise one whose workload is not known
/// (or any, if its own is not). Otherwise it continues a run that all processes have left and that did not
/// end well, as one in a new container does, but not from one Slurm job to another. Otherwise it begins a
/// further run, labelled NAME@WORKLOAD as long as the name itself is taken. A run keeps its label.
class UserRuns {
 public:
  using IsGone = std::function<bool(const Member&)>;

  /// The run of this name that the process is a member of; both nullptr if there is none.
  std::pair<Run*, Member*> find(const SenderId& id, std::string_view name) noexcept;
  /// The run that the process joins, without the members that are gone; nullptr if it begins one.
  Run* to_join(const Workload& workload, std::string_view name, const Moment& now, const IsGone& is_gone);
  /// Its series are in `source`, with the label `user`.
  Run& add(const Workload& workload, std::string_view name, const Moment& at, Source& source,
           std::string_view user);
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
