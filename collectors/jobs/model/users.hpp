#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "collectors/api/self_catalog.hpp"
#include "collectors/jobs/model/cells.hpp"
#include "collectors/jobs/model/run.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// The label of sums that belong to no single run or user.
inline constexpr std::string_view kOther = "_other";

/// The budget of new series or users: `most` at once, and as many again over `renewal`.
inline TokenBucket budget_of(std::size_t most, Nanoseconds renewal, Nanoseconds now) noexcept {
  const auto capacity = static_cast<double>(most);
  return {capacity / to_seconds(renewal), capacity, now};
}

/// The sender of the current lines, and the time.
struct Origin {
  SenderId id;
  const SenderFacts& facts;
  Moment now;
  Moment at;  ///< of the event: an MLLOG line's own time, or when a datagram was sent, otherwise `now`
};

/// A process that sent lines.
struct Process {
  Workload workload;      ///< at its first message
  std::string run;        ///< name in its last run_start: lines without a tag belong to this run
  std::string benchmark;  ///< MLLOG's submission_benchmark
  std::size_t series = 0;
  Nanoseconds last_seen{};
  bool is_gone = false;  ///< set by the current tick
  TokenBucket fresh;     ///< new series
};

template <class Fields>
void fields(Fields& f, Process& process) {
  f(process.workload, process.run, process.benchmark).elapsed(process.last_seen);
}

/// One user: its processes, its runs by the names that these report, and its part of the quotas.
struct User {
  std::string label;
  Cells other;              ///< of run `_other`
  TokenBucket lines;        ///< that it may send
  TokenBucket fresh;        ///< new series
  Nanoseconds last_seen{};  ///< its last message, whose time is also that of the charges
  std::multimap<std::string, Run, std::less<>> runs = {};
  std::map<SenderId, Process> processes = {};
  std::size_t series = 0;
  std::size_t members = 0;
};

/// A process in the run of a line. If there is no room for the run, `run` and `member` are nullptr. If there
/// is no room for the process, all three are.
struct Place {
  Process* process = nullptr;
  Run* run = nullptr;
  Member* member = nullptr;
};

/// All users of a model, with the limits and what counts towards them. Writer thread only.
///
/// Two jobs with the same run name stay apart by their workloads. A new process joins the run of its
/// workload. Otherwise it joins a run whose workload is unknown, or any run if its own workload is unknown.
/// Otherwise it continues a run that all processes have left and that did not end with success. A process in
/// a new container does so, but no run continues from one Slurm job to another. Otherwise it starts another
/// run, labelled NAME@WORKLOAD if the name itself is taken. A run keeps its label.
class Users {
 public:
  /// Creates the series of each reason at the start, because an alert on its rate needs the first increase.
  Users(Source& source, const Limits& most, IsAlive is_alive)
      : limits(most),
        source_(source),
        is_alive_(std::move(is_alive)),
        nameless_(budget_of(most.users, most.renewal_of_users, {})) {
    for (const auto& [refusal, reason] : kRefusalNames) {
      const Labels labels{{"reason", std::string(reason)}};
      dropped_slots_[static_cast<std::size_t>(refusal)] =
          OwnedSlot(source, self_catalog::jobs_dropped, labels);
    }
  }

  const std::map<std::uint32_t, User>& all() const noexcept { return users_; }  ///< by Sender::account()

  void drop(Refusal refusal, std::uint64_t count = 1) noexcept {
    dropped_[static_cast<std::size_t>(refusal)] += count;
  }

  void set_limits(const Limits& wanted) noexcept {
    limits = wanted;
    for (auto& [account, user] : users_) {
      user.lines.set(limits.lines_per_second, limits.lines_per_second);
      user.fresh = budget_of(limits.series_per_user, limits.renewal_of_user, user.last_seen);
      for (auto& [id, process] : user.processes) process.fresh = budget_of_process(user);
    }
  }

  /// The user of a message. Returns nullptr if there are too many users.
  User* user_of(const Sender& sender, const Moment& now) {
    auto found = users_.find(sender.account());
    const std::string digits = std::to_string(sender.account());
    const bool has_name = sender.user != digits;
    if (found != users_.end() && has_name && found->second.label == digits) {
      found = give_name(found, sender.user, now.elapsed);
    }
    if (found == users_.end()) {
      if (!has_name && !nameless_.take(now.elapsed)) return nullptr;
      if (users_.size() >= limits.users && !make_room_for_user()) return nullptr;
      found = users_.emplace(sender.account(), make_user(label_text(sender.user), now.elapsed)).first;
    }
    found->second.last_seen = now.elapsed;
    return &found->second;
  }

  /// Returns the name of a line's run: its tag `said`, otherwise the process's last run, otherwise its
  /// workload.
  static std::string run_name(const User& user, const Origin& from, std::string_view said) {
    // Of a client without a workload that names no run, such as plain statsd without tags.
    constexpr std::string_view kUnnamed = "unnamed";
    if (!said.empty()) return run_name_text(said);
    const auto found = user.processes.find(from.id);
    const bool is_known = found != user.processes.end();
    if (is_known && !found->second.run.empty()) return found->second.run;
    const Workload& workload = is_known ? found->second.workload : from.facts.workload;
    return workload.is_known() ? run_name_text(workload.name) : std::string(kUnnamed);
  }

  /// Finds the run, adds the process to an existing one, or creates one, as far as the quotas allow.
  Place place(User& user, const Origin& from, std::string_view run_name) {
    Process* const process = process_of(user, from);
    if (process == nullptr || run_name == kOther) return {};
    auto [run, member] = find(user, from.id, run_name);
    if (member == nullptr) {
      if (user.members >= limits.senders_per_user || members_ >= senders_left(user.members == 0)) return {};
      run = run_to_join(user, process->workload, run_name, from.now);
      const bool is_new = run == nullptr;
      if (is_new && !make_room(user, *process, kSeriesOfEveryRun, from.now)) return {};
      if (is_new) run = &add_run(user, process->workload, run_name, from.at);
      member = &run->join(from.id, from.facts);
      ++user.members;
      ++members_;
      if (is_new) charge(user, {process, run, member}, kSeriesOfEveryRun);
    }
    run->heard(from.now, from.at);
    member->last_seen = from.now.elapsed;
    return {process, run, member};
  }

  bool has_room(const User& user, const Place& place, std::size_t series) const noexcept {
    return place.run != nullptr && place.run->series + series <= limits.series_per_run &&
           has_room(user, *place.process, series);
  }

  void charge(User& user, const Place& place, std::size_t series) noexcept {
    for (std::size_t* const total :
         {&place.process->series, &place.member->series, &place.run->series, &user.series, &series_}) {
      *total += series;
    }
    place.process->fresh.take(user.last_seen, static_cast<double>(series));
    user.fresh.take(user.last_seen, static_cast<double>(series));
  }

  /// Returns the cell of a word. If there is no room, returns a cell of `_other` for a word that can be
  /// summed, otherwise nullptr. Both cases count as series_limit.
  Cell* cell(User& user, const Place& place, const Word& word, LabelChoice choice, const Moment& now) {
    if (place.run != nullptr) {
      if (Cell* const cell = place.run->cells.find(word, choice)) return cell;
    }
    const std::size_t series = series_of(word);
    if (place.run != nullptr && place.run->series + series <= limits.series_per_run &&
        make_room(user, *place.process, series, now)) {
      charge(user, place, series);
      return &place.run->cells.add(word, choice, to_seconds(now.unix));
    }
    drop(Refusal::series_limit);
    return can_be_summed(word) ? &overflow_cell(user, word, choice, now) : nullptr;
  }

  /// Checks for each process whether it is alive.
  void find_gone(const Moment& now) {
    for (auto& [account, user] : users_) {
      for (auto& [id, process] : user.processes)
        process.is_gone = is_gone(id, process.last_seen, now.elapsed);
    }
  }

  /// Removes the processes that find_gone() marked and that have sent nothing since, and what has expired.
  void remove_gone(const Moment& now) {
    for (auto& [account, user] : users_) remove_gone(user, now);
    is_full_ = false;
    std::erase_if(users_, [&](const auto& entry) {
      const User& user = entry.second;
      return user.runs.empty() && user.processes.empty() && now.elapsed - user.last_seen >= limits.retention;
    });
    if (now.elapsed - other_updated_ >= limits.retention) other_.clear();
    series_ = members_ = processes_ = 0;
    for (auto& [account, user] : users_) count(user);
  }

  /// Writes all values into their slots.
  void show(const Moment& now) const noexcept {
    for (const auto& [account, user] : users_) {
      for (const auto& [name, run] : user.runs) run.show(now);
      user.other.show();
    }
    other_.show();
    for (std::size_t i = 0; i < kRefusalCount; ++i) {
      dropped_slots_[i].show(static_cast<double>(dropped_[i]));
    }
  }

  RunModel::Usage usage() const noexcept {
    std::size_t runs = 0;
    for (const auto& [account, user] : users_) runs += user.runs.size();
    return {users_.size(), runs, processes_, members_, series_};
  }

  void save(RecordWriter& out) const {
    for (const auto& [refusal, reason] : kRefusalNames) {
      const std::uint64_t count = dropped_[static_cast<std::size_t>(refusal)];
      if (count > 0) out.begin("dropped")(reason, count);
    }
    for (const auto& [account, user] : users_) save(out, account, user, user.label);
  }

  /// Reads these lines. On a failure there are no users.
  void restore(RecordReader& in, Nanoseconds now) {
    read(in, users_, now);
    if (in.failed()) users_.clear();
    for (auto& [account, user] : users_) count(user);
  }

  Limits limits;

 private:
  using Map = std::map<std::uint32_t, User>;

  /// Series that a user gets even if others hold the whole quota: a run with the histogram of its steps, and
  /// a few further values.
  static constexpr std::size_t kFirstSeries = 190;

  User make_user(std::string label, Nanoseconds now) const {
    const RunSeries other(source_, kOther, label);
    return {.label = std::move(label),
            .other = Cells(other),
            .lines = {static_cast<double>(limits.lines_per_second),
                      static_cast<double>(limits.lines_per_second), now},
            .fresh = budget_of(limits.series_per_user, limits.renewal_of_user, now)};
  }

  /// Senders of all users that are kept for the first processes of users, one each.
  std::size_t senders_left(bool is_first) const noexcept {
    return is_first ? limits.senders : limits.senders - std::min(limits.users, limits.senders / 4);
  }

  /// Returns nullptr if there is no room for the process.
  Process* process_of(User& user, const Origin& from) {
    auto found = user.processes.find(from.id);
    if (found == user.processes.end()) {
      if (user.processes.size() >= limits.senders_per_user ||
          processes_ >= senders_left(user.processes.empty())) {
        return nullptr;
      }
      Process process{.workload = from.facts.workload, .fresh = budget_of_process(user)};
      found = user.processes.emplace(from.id, std::move(process)).first;
      ++processes_;
    }
    found->second.last_seen = from.now.elapsed;
    found->second.is_gone = false;  // the next tick checks again
    return &found->second;
  }

  /// Returns the run of this name that the process is a member of; both nullptr if there is none.
  static std::pair<Run*, Member*> find(User& user, const SenderId& id, std::string_view name) noexcept {
    const auto [begin, end] = user.runs.equal_range(name);
    for (auto run = begin; run != end; ++run) {
      if (Member* const member = run->second.find(id)) return {&run->second, member};
    }
    return {};
  }

  /// Returns the run that the process joins, after removing members that are gone. Returns nullptr if the
  /// process starts a new run.
  Run* run_to_join(User& user, const Workload& workload, std::string_view name, const Moment& now) {
    const auto [begin, end] = user.runs.equal_range(name);
    auto found =
        std::find_if(begin, end, [&](const auto& entry) { return entry.second.workload == workload; });
    if (found == end) {
      found = std::find_if(begin, end, [&](const auto& entry) {
        return !workload.is_known() || !entry.second.workload.is_known();
      });
    }
    Run* const run = found != end ? &found->second : abandoned_run(user, workload, name, now);
    if (run == nullptr) return nullptr;
    remove_left(user, *run, now);
    if (workload.is_known()) run->workload = workload;
    return run;
  }

  /// A requeued Slurm job keeps its number, so a job with another number is another task of the array. This
  /// call removes ended processes itself, because otherwise only the next tick would. Each line that finds no
  /// room repeats the call, so the number of checks is limited.
  Run* abandoned_run(User& user, const Workload& workload, std::string_view name, const Moment& now) {
    constexpr int kMostAsked = 16;
    const auto [begin, end] = user.runs.equal_range(name);
    int asked = 0;
    const auto found = std::find_if(begin, end, [&](auto& entry) {
      Run& run = entry.second;
      const bool are_jobs = run.workload.kind == workload.kind && workload.kind == cgroup::Kind::slurm_job;
      if (are_jobs) return false;
      if (!run.members().empty() && ++asked > kMostAsked) return false;
      remove_left(user, run, now);
      return run.is_abandoned();
    });
    return found == end ? nullptr : &found->second;
  }

  /// Takes members that are gone out of the run and of the counts.
  void remove_left(User& user, Run& run, const Moment& now) {
    const auto has_left = [&](const Member& member) {
      const auto known = user.processes.find(member.id);
      const bool is_over = known == user.processes.end() || is_silent(member, now.elapsed) ||
                           is_gone(member.id, known->second.last_seen, now.elapsed);
      if (is_over) --user.members, --members_;
      return is_over;
    };
    run.remove(has_left, now, true);
  }

  Run& add_run(User& user, const Workload& workload, std::string_view name, const Moment& at) {
    std::string whole(name);
    std::string label = whole;
    if (workload.is_known() && is_taken(user, label)) {
      whole += '@' + workload.name;
      label = run_name_text(whole);
    }
    for (int copy = 2; is_taken(user, label); ++copy)
      label = run_name_text(whole + '#' + std::to_string(copy));
    const RunSeries series(source_, label, user.label);
    Run& run = user.runs.emplace(name, Run(std::move(label), series, at))->second;
    run.workload = workload;
    return run;
  }

  static bool is_taken(const User& user, const std::string& label) noexcept {
    return label == kOther ||
           std::ranges::any_of(user.runs, [&](const auto& entry) { return entry.second.label() == label; });
  }

  TokenBucket budget_of_process(const User& user) const noexcept {
    return budget_of(limits.most_of_sender(), limits.renewal_of_sender, user.last_seen);
  }

  static bool has_budget(const User& user, const Process& process) noexcept {
    return process.fresh.has_any(user.last_seen) && user.fresh.has_any(user.last_seen);
  }

  /// Within the quotas of the process and of the user.
  bool has_own_room(const User& user, const Process& process, std::size_t series) const noexcept {
    return process.series + series <= limits.most_of_sender() &&
           user.series + series <= limits.series_per_user;
  }

  bool has_room(const User& user, const Process& process, std::size_t series) const noexcept {
    return has_budget(user, process) && has_own_room(user, process, series) &&
           series_ + series <= limits.series;
  }

  /// Has room, or takes it from the user with the most series for one of the first series of this user.
  bool make_room(User& user, const Process& process, std::size_t series, const Moment& now) {
    while (!has_room(user, process, series)) {
      const bool may_take = has_budget(user, process) && has_own_room(user, process, series) &&
                            user.series + series <= kFirstSeries;
      if (!may_take || !remove_run_of_largest(user.series + series, now)) return false;
    }
    return true;
  }

  /// Removes a run of the user with the most series, if that user has more than `series`. Returns false if
  /// there is none.
  bool remove_run_of_largest(std::size_t series, const Moment& now) {
    const auto charged = [](const auto& entry) {
      return entry.second.runs.empty() ? 0 : entry.second.series;
    };
    const auto most = std::ranges::max_element(users_, {}, charged);
    if (most == users_.end() || charged(*most) <= series) return false;
    remove_run(most->second, now);
    drop(Refusal::series_limit);
    return true;
  }

  /// Removes one run, so that its series are free for other users: one without processes if there is any,
  /// otherwise the one that is silent the longest. Its values are added to `_other`.
  void remove_run(User& user, const Moment& now) {
    const auto found = std::ranges::min_element(user.runs, {}, [](const auto& entry) {
      return std::pair(!entry.second.members().empty(), entry.second.last_heard());
    });
    const Run& run = found->second;
    for (const Cell& cell : run.cells.all()) {
      if (!can_be_summed(cell.word())) continue;
      Cell* const own = user.other.find(cell.word(), cell.choice());
      (own != nullptr ? *own : cell_of_others(cell.word(), cell.choice(), now)).absorb(cell);
    }
    user.series -= run.series;
    series_ -= run.series;
    user.members -= run.members().size();
    members_ -= run.members().size();
    user.runs.erase(found);
  }

  /// The closed sets bound these cells to 902 series for each user, and to 902 more for all users together.
  Cell& overflow_cell(User& user, const Word& word, LabelChoice choice, const Moment& now) {
    if (Cell* const cell = user.other.find(word, choice)) return *cell;
    const std::size_t series = series_of(word);
    if (series_ + series > limits.series) return cell_of_others(word, choice, now);
    user.series += series;
    series_ += series;
    return user.other.add(word, choice, to_seconds(now.unix));
  }

  /// The cell of user `_other`.
  Cell& cell_of_others(const Word& word, LabelChoice choice, const Moment& now) {
    other_updated_ = now.elapsed;
    Cell* const cell = other_.find(word, choice);
    return cell != nullptr ? *cell : other_.add(word, choice, to_seconds(now.unix));
  }

  /// Looks at most once a tick if it finds no process: each message of a newcomer asks again.
  bool make_room_for_user() {
    if (is_full_) return false;
    const auto found = std::ranges::min_element(users_, {}, [](const auto& entry) {
      return std::pair(!entry.second.processes.empty(), entry.second.last_seen);
    });
    is_full_ = found == users_.end() || !found->second.processes.empty();
    if (is_full_) return false;
    uncount(found->second);
    users_.erase(found);
    return true;
  }

  bool is_gone(const SenderId& id, Nanoseconds last_seen, Nanoseconds now) const {
    return id.pid != 0 ? !is_alive_(id) : now - last_seen >= limits.retention;
  }

  /// A process without a pid that has sent nothing for the run for as long as runs are kept. All processes of
  /// a user that cannot be identified, such as those in containers, have one id. One that sends must not keep
  /// the runs of those that have ended.
  bool is_silent(const Member& member, Nanoseconds now) const noexcept {
    return member.id.pid == 0 && now - member.last_seen >= limits.retention;
  }

  void remove_gone(User& user, const Moment& now) {
    std::erase_if(user.processes, [](const auto& entry) { return entry.second.is_gone; });
    const auto has_left = [&](const Member& member) {
      return !user.processes.contains(member.id) || is_silent(member, now.elapsed);
    };
    for (auto& [name, run] : user.runs) {
      run.remove(has_left, now);
      run.tick(now);
    }
    std::erase_if(user.runs,
                  [&](const auto& entry) { return entry.second.is_expired(now, limits.retention); });
  }

  /// Counts what the user has, and adds it to the totals.
  void count(User& user) {
    for (auto& [id, process] : user.processes) process.series = 0;
    user.series = user.other.series();
    user.members = 0;
    for (const auto& [name, run] : user.runs) {
      user.series += run.series;
      user.members += run.members().size();
      for (const Member& member : run.members()) user.processes.at(member.id).series += member.series;
    }
    series_ += user.series;
    members_ += user.members;
    processes_ += user.processes.size();
  }

  void uncount(const User& user) noexcept {
    series_ -= user.series;
    members_ -= user.members;
    processes_ -= user.processes.size();
  }

  /// A line, and the lines of its processes and runs. Another `label` renames the user.
  static void save(RecordWriter& out, std::uint32_t account, const User& user, std::string_view label) {
    out.begin("user")(account, label, user.last_seen);
    for (const auto& [id, process] : user.processes) out.begin("process")(id, process);
    user.other.save(out);
    for (const auto& [name, run] : user.runs) run.save(out, name);
  }

  /// The lines of users. A line of something else fails.
  void read(RecordReader& in, Map& users, Nanoseconds now) {
    User* user = nullptr;
    Run* run = nullptr;
    while (in.next()) {
      if (in.kind() == "user") {
        const auto account = in.take<std::uint32_t>();
        const auto [place, is_new] = users.emplace(account, make_user(in.take<std::string>(), now));
        user = &place->second;
        in.elapsed(user->last_seen).check(is_new);
        run = nullptr;
      } else if (in.kind() == "dropped") {
        const auto refusal = kRefusalNames.find(in.take<std::string>());
        const auto count = in.take<std::uint64_t>();
        if (refusal) drop(*refusal, count);
      } else {
        in.check(user != nullptr && read_line(in, *user, run));
      }
    }
    // count() needs the process of each member.
    for (const auto& [account, each] : users) {
      for (const auto& [name, saved] : each.runs) {
        for (const Member& member : saved.members()) in.check(each.processes.contains(member.id));
      }
    }
  }

  /// A line after the line of its user, or of its run.
  bool read_line(RecordReader& in, User& user, Run*& run) const {
    const std::string_view kind = in.kind();
    if (kind == "run") {
      run = &read_run(in, user);
    } else if (kind == "process") {
      const auto id = in.take<SenderId>();
      Process process{.fresh = budget_of_process(user)};
      in(process).check(user.processes.emplace(id, std::move(process)).second);
    } else if (kind == "cell") {
      (run != nullptr ? run->cells : user.other).restore_cell(in);
    } else {
      return run != nullptr && run->restore_line(in);
    }
    return true;
  }

  /// Adds a run of an earlier process. The lines of its parts follow.
  Run& read_run(RecordReader& in, User& user) const {
    std::string name = in.take<std::string>();
    std::string label = in.take<std::string>();
    in.check(!label.empty() && !is_taken(user, label));
    const RunSeries made(source_, label, user.label);
    Run& run = user.runs.emplace(std::move(name), Run(std::move(label), made, Moment{}))->second;
    in(run.workload, run);
    return run;
  }

  // The same way as over a restart of the daemon, so that nothing but the label changes.
  Map::iterator give_name(Map::iterator user, std::string_view name, Nanoseconds now) {
    RecordWriter out;
    save(out, user->first, user->second, label_text(name));
    const std::string lines = out.take();
    RecordReader in(lines);
    Map renamed;
    read(in, renamed, now);
    if (in.failed() || renamed.empty()) return user;
    uncount(user->second);
    users_.erase(user);
    const auto place = users_.insert(renamed.extract(renamed.begin())).position;
    count(place->second);
    return place;
  }

  Source& source_;
  const IsAlive is_alive_;
  Map users_;
  std::size_t series_ = 0;
  std::size_t members_ = 0;  ///< processes of runs: a process of two runs counts twice
  std::size_t processes_ = 0;
  Cells other_{RunSeries(source_, kOther, kOther)};  ///< of user `_other`: sums for which no series was left
  Nanoseconds other_updated_{};
  TokenBucket nameless_;  ///< new users without a name: the uids that a process may choose
  bool is_full_ = false;  ///< since the last tick no user could be removed for another
  std::array<std::uint64_t, kRefusalCount> dropped_{};
  std::array<OwnedSlot, kRefusalCount> dropped_slots_;
};

}  // namespace gpumeter::jobs
