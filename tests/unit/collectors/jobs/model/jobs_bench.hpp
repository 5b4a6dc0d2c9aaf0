#pragma once

#include <cstdio>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/jobs/model/run_model.hpp"

namespace gpumeter::jobs {

/// A machine with jobs: they send, die, and time goes by; then what the page would show, as text.
class JobsBench {
 public:
  explicit JobsBench(const Limits& limits = {})
      : model(limits, [this](const SenderId& id) {
          ++questions;
          return !dead_.contains(id.pid);
        }) {}

  void send(int pid, std::string_view payload, std::uint32_t uid = 1000) {
    model.receive(sender(pid, uid), payload, now);
  }
  void mllog(int pid, std::string_view line) { model.receive_mllog(sender(pid, 1000), "bert", line, now); }
  /// From now on: a process's parent, its workload and its start, `age` seconds ago.
  void born(int pid, double age, std::vector<std::int32_t> ancestors = {}) {
    facts_[pid].began = now.elapsed - Nanoseconds(static_cast<std::int64_t>(age * 1e9));
    facts_[pid].ancestors = std::move(ancestors);
  }
  void in_workload(int pid, cgroup::Kind kind, std::string name) {
    facts_[pid].workload = {kind, std::move(name)};
  }
  void kill(int pid) { dead_.insert(pid); }
  void wait(double seconds) {
    const Nanoseconds time(static_cast<std::int64_t>(seconds * 1e9));
    now = {now.elapsed + time, now.unix + time};
  }

  /// The lines of the page, of these families only where some are named.
  std::string page(const std::set<std::string_view>& families = {}) {
    model.tick(now);
    std::string text;
    for (const JobSeries& line : model.snapshot()->series) {
      if (families.empty() || families.contains(line.series.family->name)) text += shown(line) + '\n';
    }
    return text;
  }
  /// "reason=count" of each reason that is not 0.
  std::string dropped() {
    model.tick(now);
    std::string text;
    for (std::size_t i = 0; i < kRefusalCount; ++i) {
      const auto count = model.snapshot()->dropped[i];
      if (count > 0)
        text += std::string(to_string(static_cast<Refusal>(i))) + '=' + std::to_string(count) + ' ';
    }
    return text;
  }

  RunModel model;
  int questions = 0;  ///< whether a process is alive
  Moment now{std::chrono::seconds(5000), std::chrono::seconds(1'700'000'000)};

 private:
  Sender sender(int pid, std::uint32_t uid) const {
    const auto known = facts_.find(pid);
    return {{uid, pid, 1},
            uid == 1000   ? "alice"
            : uid == 1001 ? "bob"
                          : "other",
            known == facts_.end() ? nullptr : &known->second};
  }
  static std::string shown(const JobSeries& line) {
    constexpr const char* kSuffixes[] = {"", "_bucket", "_sum", "_count"};
    std::string text =
        std::string(line.series.family->name) + kSuffixes[static_cast<std::size_t>(line.part)] + '{';
    for (const Label& label : line.series.labels) {
      if (!text.ends_with('{')) text += ',';
      text += label.name + "=\"" + label.value + '"';
    }
    char number[32];
    std::snprintf(number, sizeof number, "} %.15g", line.value);
    return text + number;
  }

  std::set<int> dead_;
  std::map<int, SenderFacts> facts_;
};

}  // namespace gpumeter::jobs
