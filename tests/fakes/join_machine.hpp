#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/jobs/join/run_join.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {

using workloads::DeviceUse;
using workloads::ProcessUse;

inline constexpr std::uint32_t kAlice = 1000;
inline constexpr std::uint32_t kBob = 1001;

/// A machine whose state the test sets each second. Returns the totals of the runs.
class JoinMachine {
 public:
  void process(int pid, int parent, const std::string& cgroup) {
    tree_.write(std::to_string(pid) + "/stat",
                std::to_string(pid) + " (x) S " + std::to_string(parent) + " 1");
    tree_.write(std::to_string(pid) + "/cgroup", "0::" + cgroup + "\n");
    groups_[pid] = cgroup;
  }
  void tells(int pid, std::uint32_t uid, const std::string& user, const std::string& run) {
    jobs.processes.push_back({{uid, pid, 5}, {user, run}});
    jobs.runs.push_back({user, run});
  }
  DeviceUse& device(const std::string& uuid, unsigned index = 0) {
    DeviceUse& device = devices.emplace_back();
    device.uuid = uuid;
    device.index = index;
    device.has_energy = true;
    return device;
  }
  ProcessUse in_group(int pid, std::uint32_t uid = kAlice) {
    ProcessUse result = use(pid, 0, 0, uid);
    result.group = groups_.at(pid);
    return result;
  }
  static ProcessUse use(int pid, double joules, std::optional<double> busy, std::uint32_t uid = kAlice) {
    ProcessUse use;
    use.id = {pid, 5};
    use.uid = uid;
    use.present = true;
    use.energy_joules = joules;
    use.busy_seconds = busy;
    return use;
  }
  /// `listed`: the processes were read again.
  void second(bool listed = true) {
    now_ += std::chrono::seconds(1);
    DeviceUses uses;
    for (DeviceUse& device : devices) {
      device.at = now_;
      if (listed) device.listed_at = now_;
      uses.push_back(std::make_shared<DeviceUse>(device));
    }
    kin_.begin_pass(now_);
    join_->update(jobs, uses);
  }
  /// Continues with what the state file keeps.
  void restart() {
    const std::string saved = join_->saved();
    join_.emplace(kin_);
    ASSERT_TRUE(join_->restore(saved));
  }
  /// Sorted by run.
  std::string text() const {
    Store store;
    SeriesList list(store.attach());
    join_->write(list);
    list.commit(now_);
    std::multimap<std::string, std::string> lines;  // by the labels `run` and `user`
    store.walk([&](const Family& family) {
      family.for_each([&](const Series& series) {
        std::string labels;
        for (const auto& [name, value] : series.labels().pairs()) {
          labels += (labels.empty() ? "" : ",") + std::string(name) + "=\"" + std::string(value) + '"';
        }
        const auto pairs = series.labels().pairs();
        lines.emplace(std::string(pairs[1].second) + ' ' + std::string(pairs[0].second),
                      std::string(family.descriptor().name) + "{" + labels + "} " +
                          std::to_string(series.value()).substr(0, 6) + "\n");
      });
    });
    std::string text;
    for (const auto& [run, line] : lines) text += line;
    return text;
  }

  /// The run of a process, as other parts of the daemon see it.
  std::string run_of(int pid) {
    const auto runs = join_->take_runs();
    const auto run = runs.find({pid, 5});
    return run == runs.end() ? "none" : run->second.user + "/" + run->second.run;
  }

  RunList jobs;
  std::vector<DeviceUse> devices;

 private:
  Tree tree_ = make_tree({});
  std::map<int, std::string> groups_;
  ProcessKin kin_{tree_.path()};
  std::optional<RunJoin> join_{std::in_place, kin_};
  Nanoseconds now_{};
};

}  // namespace gpumeter::jobs
