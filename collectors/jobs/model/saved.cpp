#include "collectors/jobs/model/saved.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/label_text.hpp"

namespace gpumeter::jobs {
namespace {

constexpr std::size_t kFactsOfRunLine = 3;  // the first facts; the others have lines of their own

}  // namespace

void Cell::save(RecordWriter& out) const {
  out.begin("cell").text(word_->name).integer(choice_[0]).integer(choice_[1]).number(value_).number(times_);
  for (const double bucket : buckets_) out.number(bucket);
}

void Cell::restore(SavedReader& in) {
  value_ = in.finite();
  times_ = in.finite();
  for (double& bucket : buckets_) bucket = in.finite();
}

void Cells::save(RecordWriter& out) const {
  for (const Cell& cell : cells_) cell.save(out);
  for (const CustomScalar& custom : customs_) out.begin("custom").text(custom.metric).number(custom.value);
}

void Cells::restore_cell(SavedReader& in) {
  const Word* const word = find_word(in.text());
  LabelChoice choice{};
  for (std::size_t i = 0; i < choice.size(); ++i) {
    choice[i] = static_cast<std::uint8_t>(in.integer(0, kNoLabel));
    const ClosedLabel* const label = word != nullptr ? word->labels[i] : nullptr;
    const std::size_t values = label != nullptr ? label->values.size() : 0;
    if (choice[i] != kNoLabel && choice[i] >= values) in.fail();
  }
  if (word == nullptr || word->family == nullptr || in.failed() || find(*word, choice) != nullptr) {
    return in.fail();
  }
  add(*word, choice).restore(in);
}

void Cells::restore_custom(SavedReader& in) {
  const std::string metric = in.text();
  add_custom(metric, in.finite());
}

void Evaluation::save(RecordWriter& out) const {
  out.begin("evaluation").text(metric_).flag(lower_is_better_);
  out.number(seen_.first).number(seen_.value).number(seen_.best).number(seen_.target);
  jobs::save(out, seen_.best_time);
  jobs::save(out, seen_.solved);
}

void Evaluation::restore(SavedReader& in) {
  lower_is_better_ = in.flag();
  seen_.first = in.optional_finite();
  seen_.value = in.optional_finite();
  seen_.best = in.optional_finite();
  seen_.target = in.optional_finite();
  seen_.best_time = in.moment();
  seen_.solved = in.optional_moment();
}

void RunProgress::save(RecordWriter& out) const {
  out.begin("progress").flag(worked_).number(step_).number(highest_).number(resumes_).integer(announced_);
  out.number(restarts_).number(lost_steps_);
  for (const Member& member : members_) {
    out.begin("member");
    jobs::save(out, member.id);
    out.flag(member.stopped).integer(static_cast<int>(member.end)).flag(member.announced);
    out.flag(member.announced_at.has_value()).integer(member.announced_at.value_or(0)).flag(member.inherits);
    out.flag(member.leader.has_value());
    jobs::save(out, member.leader.value_or(SenderId{}));
    out.flag(member.orphaned).number(member.step).number(member.start).number(member.counted_steps);
    out.integer(member.restarts).integer(static_cast<std::int64_t>(member.series)).time(member.last_seen);
    if (std::ranges::none_of(member.memory, &std::optional<double>::has_value)) continue;
    out.begin("memory");
    for (const std::optional<double>& part : member.memory) out.number(part);
  }
}

void RunProgress::restore(SavedReader& in) {
  worked_ = in.flag();
  step_ = in.optional_finite();
  highest_ = in.optional_finite();
  resumes_ = in.optional_finite();
  announced_ = static_cast<std::uint32_t>(in.integer(0, UINT32_MAX));
  restarts_ = in.finite();
  lost_steps_ = in.finite();
}

void RunProgress::restore_member(SavedReader& in) {
  Member member;
  member.id = in.sender_id();
  member.stopped = in.flag();
  member.end = static_cast<End>(in.integer(0, static_cast<int>(End::aborted)));
  member.announced = in.flag();
  const bool has_time = in.flag();
  const std::int64_t time = in.integer(INT64_MIN, INT64_MAX);
  if (has_time) member.announced_at = time;
  member.inherits = in.flag();
  const bool has_leader = in.flag();
  const SenderId leader = in.sender_id();
  if (has_leader) member.leader = leader;
  member.orphaned = in.flag();
  member.step = in.optional_finite();
  member.start = in.optional_finite();
  member.counted_steps = in.finite();
  member.restarts = static_cast<std::uint32_t>(in.integer(0, UINT32_MAX));
  member.series = in.count();
  member.last_seen = in.elapsed();
  if (find(member.id) != nullptr) in.fail();
  members_.push_back(member);
}

void RunProgress::restore_memory(SavedReader& in) {
  if (members_.empty()) return in.fail();
  for (std::optional<double>& part : members_.back().memory) part = in.optional_finite();
}

void Run::save(RecordWriter& out, std::string_view name) const {
  out.begin("run").text(name).text(label_);
  jobs::save(out, workload);
  out.integer(static_cast<std::int64_t>(series)).flag(announced_).number(samples_).time(last_live_);
  for (const Moment& moment : {start_, heard_, ended_, last_update_}) jobs::save(out, moment);
  out.integer(worst_ ? static_cast<int>(*worst_) : -1);
  out.integer(stop_ ? static_cast<int>(stop_->end) : -1);
  jobs::save(out, stop_ ? stop_->time : Moment{});
  for (std::size_t i = 0; i < kFactsOfRunLine; ++i) out.text(facts_[i]);
  for (std::size_t i = kFactsOfRunLine; i < kFactCount; ++i) {
    if (!facts_[i].empty()) out.begin("fact").text(to_string(static_cast<Fact>(i))).text(facts_[i]);
  }
  progress.save(out);
  cells.save(out);
  for (const Evaluation& evaluation : evaluations_) evaluation.save(out);
}

void Run::restore(SavedReader& in) {
  const auto end = [&]() -> std::optional<End> {
    const std::int64_t value = in.integer(-1, static_cast<int>(End::aborted));
    return value < 0 ? std::nullopt : std::optional(static_cast<End>(value));
  };
  series = in.count();
  announced_ = in.flag();
  samples_ = in.finite();
  last_live_ = in.elapsed();
  for (Moment* const moment : {&start_, &heard_, &ended_, &last_update_}) *moment = in.moment();
  worst_ = end();
  const std::optional<End> stopped = end();
  const Moment at = in.moment();
  if (stopped) stop_ = Stop{at, *stopped};
  RunFacts facts;
  for (std::size_t i = 0; i < kFactsOfRunLine; ++i) facts[i] = label_text(in.text());
  note_facts(facts);
}

void Run::restore_fact(SavedReader& in) {
  const std::optional<Fact> fact = kFactNames.find(in.text());
  const std::string text = in.text();
  if (!fact || !is_acceptable(*fact, text)) return in.fail();
  RunFacts facts;
  facts[static_cast<std::size_t>(*fact)] = text;
  note_facts(facts);
}

Run& UserRuns::restore(SavedReader& in, Source& source, std::string_view user) {
  std::string name = in.text();
  std::string label = in.text();
  if (label.empty() || is_taken(label)) in.fail();
  const RunSeries made(source, label, user);
  Run& run = runs_.emplace(std::move(name), Run(std::move(label), made, Moment{}))->second;
  run.workload = in.workload();
  run.restore(in);
  return run;
}

void User::save(RecordWriter& out, std::uint32_t account, std::string_view label) const {
  out.begin("user").integer(account).text(label).time(last_seen_);
  for (const auto& [id, process] : processes_) {
    out.begin("process");
    jobs::save(out, id);
    jobs::save(out, process.workload);
    out.text(process.run).text(process.benchmark).time(process.last_seen);
  }
  other_.save(out);
  for (const auto& [name, run] : runs_) run.save(out, name);
}

void User::restore_process(SavedReader& in) {
  const SenderId id = in.sender_id();
  Process process{.fresh = budget_of_process()};
  process.workload = in.workload();
  process.run = in.text();
  process.benchmark = in.text();
  process.last_seen = in.elapsed();
  if (!processes_.emplace(id, std::move(process)).second) in.fail();
}

/// A line after the line of its user, or of its run.
void User::restore_line(SavedReader& in, Run*& run) {
  const std::string_view kind = in.kind();
  Cells& cells = run != nullptr ? run->cells : other_;
  const auto restore_of_run = [&] {
    if (kind == "progress") return run->progress.restore(in), true;
    if (kind == "member") return run->progress.restore_member(in), true;
    if (kind == "memory") return run->progress.restore_memory(in), true;
    if (kind == "fact") return run->restore_fact(in), true;
    if (kind == "custom") return cells.restore_custom(in), true;
    if (kind == "evaluation") return run->add_evaluation(in.text()).restore(in), true;
    return false;
  };
  if (kind == "run") {
    run = &runs_.restore(in, shared_.source, label_);
  } else if (kind == "process") {
    restore_process(in);
  } else if (kind == "cell") {
    cells.restore_cell(in);
  } else if (run == nullptr || !restore_of_run()) {
    in.fail();
  }
}

// count() needs the process of each member.
bool User::is_whole() const {
  return std::ranges::all_of(runs_, [&](const auto& entry) {
    return std::ranges::all_of(entry.second.progress.members(),
                               [&](const Member& member) { return processes_.contains(member.id); });
  });
}

std::string RunModel::save(const Moment& now) const {
  RecordWriter out;
  out.begin("clock");
  jobs::save(out, now);
  for (std::size_t i = 0; i < kRefusalCount; ++i) {
    if (shared_.dropped[i] == 0) continue;
    out.begin("dropped").text(to_string(static_cast<Refusal>(i)));
    out.integer(static_cast<std::int64_t>(shared_.dropped[i]));
  }
  for (const auto& [account, user] : users_) user.save(out, account, user.label());
  return out.take();
}

// The lines of users. A line of something else fails.
void RunModel::read(SavedReader& in, Users& users, Nanoseconds now) {
  User* user = nullptr;
  Run* run = nullptr;
  while (in.next()) {
    if (in.kind() == "user") {
      const auto account = static_cast<std::uint32_t>(in.integer(0, UINT32_MAX));
      const auto [place, is_new] = users.try_emplace(account, in.text(), shared_, now);
      user = &place->second;
      user->heard(in.elapsed());
      run = nullptr;
      if (!is_new) in.fail();
    } else if (in.kind() == "dropped") {
      const auto refusal = kRefusalNames.find(in.text());
      const std::int64_t count = in.integer(0, INT64_MAX);
      if (refusal) shared_.drop(*refusal, static_cast<std::uint64_t>(count));
    } else if (user != nullptr) {
      user->restore_line(in, run);
    } else {
      in.fail();
    }
  }
  const bool is_whole = std::ranges::all_of(users, [](const auto& entry) { return entry.second.is_whole(); });
  if (!is_whole) in.fail();
}

// The same way as over a restart of the daemon, so that nothing but the label changes.
RunModel::Users::iterator RunModel::give_name(Users::iterator user, std::string_view name, Nanoseconds now) {
  RecordWriter out;
  user->second.save(out, user->first, label_text(name));
  const std::string lines = out.take();
  SavedReader in(lines);
  Users renamed;
  read(in, renamed, now);
  if (in.failed() || renamed.empty()) return user;
  user->second.uncharge();
  users_.erase(user);
  const auto place = users_.insert(renamed.extract(renamed.begin())).position;
  place->second.count();
  return place;
}

Result<Done> RunModel::restore(std::string_view section, const Moment& now, bool is_of_this_boot) {
  SavedReader in(section);
  if (!section.empty() && (!in.next() || in.kind() != "clock")) in.fail();
  const Moment saved = section.empty() ? now : in.moment();
  const Nanoseconds shift = (now.elapsed - now.unix) - (saved.elapsed - saved.unix);
  constexpr Nanoseconds kMostShift = std::chrono::hours(24 * 365 * 10);  // of an invalid file
  // Within a boot CLOCK_BOOTTIME goes on, whatever happens to the calendar clock.
  if (!is_of_this_boot && (shift > kMostShift || shift < -kMostShift)) in.fail();
  if (!is_of_this_boot) in.set_shift(shift);
  read(in, users_, now.elapsed);
  if (in.failed()) {
    users_.clear();
    return Error("the runs of jobs, line " + std::to_string(in.line()));
  }
  for (auto& [account, each] : users_) each.count();
  return Done{};
}

}  // namespace gpumeter::jobs
