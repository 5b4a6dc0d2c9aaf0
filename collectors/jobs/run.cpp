#include "collectors/jobs/run.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/label_text.hpp"

namespace gpumeter::jobs {

Member& Run::heard(const SenderId& id, const Moment& now, const Moment& at,
                   const std::function<bool(const Member&)>& is_gone) {
  if (progress.find(id) == nullptr) progress.remove_until_alive(is_gone);
  const bool was_empty = progress.members().empty();
  Member& member = progress.join(id, stop_ && stop_->success);
  if (was_empty && stop_ && !stop_->success) stop_.reset();  // it goes on
  last_live_ = now.elapsed;
  last_update_ = at;
  return member;
}

void Run::tick(const Moment& now) noexcept {
  if (progress.is_live()) last_live_ = now.elapsed;
}

bool Run::is_over(const Moment& now, Nanoseconds retention) const noexcept {
  return !progress.is_live() && now.elapsed - last_live_ >= retention;
}

/// The other ranks of a run that stopped well may start later than the one that stopped first.
bool Run::may_begin_anew(const Member& member) const noexcept {
  return stop_ && stop_->success && std::ranges::all_of(progress.members(), [&](const Member& other) {
           return other.stopped || other.id == member.id;
         });
}

void Run::begin_anew(const Moment& now) noexcept {
  start_ = now;
  stop_.reset();
  samples_ = 0;
  progress.begin_anew();
  for (Evaluation& evaluation : evaluations_) evaluation.forget();
}

void Run::started(Member& member, const RunFacts& facts, const Moment& now) {
  if (may_begin_anew(member)) begin_anew(now);
  if (!announced_) start_ = now;
  announced_ = true;
  member.stopped = false;
  if (stop_ && !stop_->success) stop_.reset();
  std::vector<Label> said;
  for (const auto& [name, value] : {std::pair("framework", facts.framework),
                                    std::pair("version", facts.version), std::pair("model", facts.model)}) {
    if (!value.empty()) said.push_back({name, label_text(value)});
  }
  if (!said.empty()) facts_ = std::move(said);  // not every rank need say it
}

void Run::stopped(Member& member, bool success, const Moment& now) noexcept {
  member.stopped = true;
  stop_ = Stop{now, success && (!stop_ || stop_->success)};
}

Evaluation* Run::find_evaluation(std::string_view metric) noexcept {
  const auto found = std::ranges::find(evaluations_, metric, &Evaluation::metric);
  return found == evaluations_.end() ? nullptr : &*found;
}

double Run::new_samples(double so_far) noexcept {
  const double before = std::exchange(samples_, std::max(samples_, so_far));
  return samples_ - before;
}

double Run::run_time(const Moment& now) const noexcept {
  const Moment& end = stop_ ? stop_->time : progress.members().empty() ? last_update_ : now;
  return std::max(0.0, seconds_between(start_, end));
}

void Run::write_info(const std::vector<Label>& labels, std::vector<JobSeries>& out) const {
  if (facts_.empty()) return;
  std::vector<Label> all = labels;
  all.insert(all.end(), facts_.begin(), facts_.end());
  out.push_back({{&catalog::ml_run_info, std::move(all)}, "", 1});
}

void Run::write(const std::vector<Label>& labels, const Moment& now, std::vector<JobSeries>& out) const {
  const auto add = [&](const MetricDescriptor& family, double value) {
    out.push_back({{&family, labels}, "", value});
  };
  add(catalog::ml_run_start_timestamp, to_seconds(start_.unix));
  if (stop_) {
    std::vector<Label> all = labels;
    all.push_back({"status", stop_->success ? "success" : "aborted"});
    out.push_back({{&catalog::ml_run_stop_timestamp, std::move(all)}, "", to_seconds(stop_->time.unix)});
  }
  add(catalog::ml_run_time, run_time(now));
  add(catalog::ml_last_update_timestamp, to_seconds(last_update_.unix));
  add(catalog::ml_run_restarts, progress.restarts());
  add(catalog::ml_lost_steps, progress.lost_steps());
  if (progress.step()) add(catalog::ml_step, *progress.step());
  write_info(labels, out);
  for (const Evaluation& evaluation : evaluations_) evaluation.write(labels, start_, out);
  cells.write(labels, out);
}

}  // namespace gpumeter::jobs
