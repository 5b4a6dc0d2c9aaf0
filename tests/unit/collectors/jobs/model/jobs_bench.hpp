#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "collectors/api/self_catalog.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::jobs {

/// A series of the store.
struct PageLine {
  std::string_view family;
  std::string_view suffix;
  std::vector<std::pair<std::string, std::string>> labels;  ///< the run's own first: name, then user
  double value;

  const std::string& run() const { return labels.at(0).second; }
  const std::string& user() const { return labels.at(1).second; }
  std::string shown() const {
    std::string text = std::string(family) + std::string(suffix) + '{';
    for (const auto& [name, label] : labels) {
      if (!text.ends_with('{')) text += ',';
      text += name + "=\"" + label + '"';
    }
    char number[32];
    std::snprintf(number, sizeof number, "} %.15g", value);
    return text + number;
  }
};

/// The series of all runs: run by run, with the start first. If families are named, only theirs.
inline std::vector<PageLine> lines_of(const Store& store, const std::set<std::string_view>& families = {}) {
  std::vector<PageLine> lines;
  store.walk([&](const Family& family) {
    const std::string_view title = family.descriptor().name;
    if (!title.starts_with("ml_") || (!families.empty() && !families.contains(title))) return;
    family.for_each([&](const Series& series) {
      PageLine& line = lines.emplace_back();
      line.family = title;
      line.suffix = suffix_of(series.part());
      for (const auto& [name, value] : series.labels().pairs()) line.labels.emplace_back(name, value);
      line.value = series.value();
    });
  });
  const auto place = [](const PageLine& line) {
    const std::string_view kFirst[] = {"ml_run_start_timestamp_seconds", "ml_run_stop_timestamp_seconds"};
    using Place = std::tuple<bool, const std::string&, bool, const std::string&, std::ptrdiff_t>;
    return Place(line.user() == "_other", line.user(), line.run() == "_other", line.run(),
                 std::find(std::begin(kFirst), std::end(kFirst), line.family) - std::begin(kFirst));
  };
  std::ranges::stable_sort(lines, {}, place);
  return lines;
}

/// Lines of a page. Equal to a text with the same lines in any order.
struct PageText : std::string {
  using std::string::string;
  static std::vector<std::string> sorted(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    std::ranges::sort(lines);
    return lines;
  }
  friend bool operator==(const PageText& page, const std::string& text) {
    return sorted(page) == sorted(text);
  }
  friend bool operator==(const PageText& page, const char* text) { return page == std::string(text); }
};

/// A machine with jobs: processes send and end, and time passes. Returns the page as text.
class JobsBench {
 public:
  explicit JobsBench(const Limits& limits = {})
      : model(source_, limits, [this](const SenderId& id) {
          ++questions;
          return !dead_.contains(id.pid);
        }) {}

  void send(int pid, std::string_view payload, std::uint32_t uid = 1000) {
    model.receive(sender(pid, uid), payload, now);
  }
  /// A datagram that waited for `seconds` until it was read.
  void send_late(int pid, std::string_view payload, double seconds) {
    model.receive(sender(pid, 1000), payload, now,
                  now.at(now.unix - Nanoseconds(static_cast<std::int64_t>(seconds * 1e9))));
  }
  /// From a process in a user namespace of `owner`.
  void send_as(std::uint32_t owner, int pid, std::string_view payload, std::uint32_t uid,
               std::string_view name = {}) {
    Sender from = sender(pid, uid);
    from.owner = owner;
    from.user = name.empty() ? sender(pid, owner).user : name;
    model.receive(from, payload, now);
  }
  void mllog(int pid, std::string_view line) { model.receive_mllog(sender(pid, 1000), "bert", line, now); }
  /// From now on, a process has these ancestors, a workload, and a start `age` seconds ago.
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

  void tick() {
    model.tick(now);
    source_.commit(now.elapsed);
  }
  std::vector<PageLine> lines(const std::set<std::string_view>& families = {}) {
    tick();
    return lines_of(store, families);
  }
  /// Returns the lines of the page. If families are named, returns only theirs.
  PageText page(const std::set<std::string_view>& families = {}) {
    PageText text;
    for (const PageLine& line : lines(families)) text += line.shown() + '\n';
    return text;
  }
  /// Returns "reason=count" for each reason with a count.
  std::string dropped() {
    tick();
    std::string text;
    store.walk([&](const Family& family) {
      if (family.descriptor().name != self_catalog::jobs_dropped.name) return;
      family.for_each([&](const Series& series) {
        const std::string reason(series.labels().pairs().at(0).second);
        if (series.value() > 0) text += reason + '=' + std::to_string(std::llround(series.value())) + ' ';
      });
    });
    return text;
  }

  Store store;

 private:
  Source source_ = store.attach();

 public:
  RunModel model;
  int questions = 0;  ///< number of checks whether a process is alive
  Moment now{std::chrono::seconds(5000), std::chrono::seconds(1'700'000'000)};

 private:
  Sender sender(int pid, std::uint32_t uid) const {
    const auto known = facts_.find(pid);
    const auto user = users_.try_emplace(uid, "user" + std::to_string(uid)).first;
    return {{uid, pid, 1}, user->second, known == facts_.end() ? nullptr : &known->second};
  }

  mutable std::map<std::uint32_t, std::string> users_{{1000, "alice"}, {1001, "bob"}};
  std::set<int> dead_;
  std::map<int, SenderFacts> facts_;
};

}  // namespace gpumeter::jobs
