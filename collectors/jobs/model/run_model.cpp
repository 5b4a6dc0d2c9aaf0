#include "collectors/jobs/model/run_model.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "collectors/api/self_catalog.hpp"
#include "collectors/jobs/wire/label_text.hpp"
#include "collectors/jobs/wire/payload.hpp"

namespace gpumeter::jobs {
namespace {

const SenderFacts kNoFacts;

Origin origin_of(const Sender& sender, const Moment& now, const Moment& at) noexcept {
  return {sender.id, sender.facts != nullptr ? *sender.facts : kNoFacts, now, at};
}

}  // namespace

/// Creates the series of each reason at the start, because an alert on its rate needs the first increase.
RunModel::RunModel(Source& source, const Limits& limits, IsAlive is_alive)
    : shared_{.source = source, .limits = limits, .is_alive = std::move(is_alive)},
      nameless_(budget_of(limits.users, limits.renewal_of_users, {})) {
  for (std::size_t i = 0; i < kRefusalCount; ++i) {
    const std::string reason(to_string(static_cast<Refusal>(i)));
    dropped_[i] = OwnedSlot(source, self_catalog::jobs_dropped, Labels{{"reason", reason}});
  }
  shared_.make_room = [this](std::size_t series, Nanoseconds at) { return make_room_for_series(series, at); };
}

void RunModel::set_limits(const Limits& limits) noexcept {
  shared_.limits = limits;
  for (auto& [uid, user] : users_) user.set_rates(limits);
}

void RunModel::receive(const Sender& sender, std::string_view payload, const Moment& now) {
  if (payload.size() > kMaxPayload) return drop(Refusal::too_long);
  User* const user = user_of(sender, now);
  if (user == nullptr) return drop(Refusal::series_limit);
  Message message(shared_, *user, origin_of(sender, now, now));
  PayloadLines lines(payload);
  for (std::size_t count = 0; const auto line = lines.next(); ++count) {
    if (count >= kMaxLines) {
      drop(Refusal::too_many_lines);
    } else if (const std::size_t cost = lines_in(*line); !user->take_lines(now.elapsed, cost)) {
      drop(Refusal::rate_limit, cost);
    } else {
      message.take(parse_line(*line));
    }
  }
  message.finish();
}

void RunModel::receive_mllog(const Sender& sender, std::string_view run, std::string_view line,
                             const Moment& now) {
  if (line.size() > kMaxPayload) return drop(Refusal::too_long);
  const auto parsed = parse_mllog(line);
  if (!parsed) return;
  if (const auto* refusal = std::get_if<Refusal>(&*parsed)) return drop(*refusal);
  const auto& mllog = std::get<MllogLine>(*parsed);
  if (mllog.unix_time > now.unix + kTimestampTolerance) return drop(Refusal::bad_timestamp);
  User* const user = user_of(sender, now);
  if (user == nullptr) return drop(Refusal::series_limit);
  Message(shared_, *user, origin_of(sender, now, now.at(mllog.unix_time))).take(run, mllog);
}

/// Returns nullptr if there are too many users.
User* RunModel::user_of(const Sender& sender, const Moment& now) {
  auto found = users_.find(sender.account());
  const std::string digits = std::to_string(sender.account());
  const bool has_name = sender.user != digits;
  if (found != users_.end() && has_name && found->second.label() == digits) {
    found = give_name(found, sender.user, now.elapsed);
  }
  if (found == users_.end()) {
    if (!has_name && !nameless_.take(now.elapsed)) return nullptr;
    if (users_.size() >= shared_.limits.users && !make_room_for_user()) return nullptr;
    found = users_.try_emplace(sender.account(), label_text(sender.user), shared_, now.elapsed).first;
  }
  found->second.heard(now.elapsed);
  return &found->second;
}

bool RunModel::make_room_for_series(std::size_t series, Nanoseconds now) {
  const auto charged = [](const auto& entry) {
    return entry.second.runs().empty() ? 0 : entry.second.series();
  };
  const auto most = std::ranges::max_element(users_, {}, charged);
  if (most == users_.end() || charged(*most) <= series) return false;
  most->second.remove_run(now);
  drop(Refusal::series_limit);
  return true;
}

/// Looks at most once a tick if it finds no process: each message of a newcomer asks again.
bool RunModel::make_room_for_user() {
  if (is_full_) return false;
  const auto silent = [](const auto& left, const auto& right) {
    return std::pair(left.second.has_processes(), left.second.last_seen()) <
           std::pair(right.second.has_processes(), right.second.last_seen());
  };
  const auto found = std::ranges::min_element(users_, silent);
  is_full_ = found == users_.end() || found->second.has_processes();
  if (is_full_) return false;
  found->second.uncharge();
  users_.erase(found);
  return true;
}

void RunModel::tick(const Moment& now, const std::function<void()>& receive_last) {
  for (auto& [uid, user] : users_) user.find_gone(now);
  if (receive_last) receive_last();
  for (auto& [uid, user] : users_) user.remove_gone(now);
  is_full_ = false;
  std::erase_if(users_, [&](const auto& entry) { return entry.second.is_over(now.elapsed); });
  if (now.elapsed - shared_.other_updated >= shared_.limits.retention) shared_.other.clear();
  shared_.series = shared_.members = shared_.processes = 0;
  for (auto& [uid, user] : users_) user.count();
  for (const auto& [uid, user] : users_) user.show(now);
  shared_.other.show();
  for (std::size_t i = 0; i < kRefusalCount; ++i) {
    dropped_[i].show(static_cast<double>(shared_.dropped[i]));
  }
}

RunList RunModel::runs() const {
  RunList list;
  for (const auto& [uid, user] : users_) {
    for (const auto& [name, run] : user.runs()) {
      const RunName& label = list.runs.emplace_back(RunName{user.label(), run.label()});
      if (run.is_over()) list.ended.push_back(label);
      for (const SenderId& id : run.progress.working()) list.processes.push_back({id, label});
    }
  }
  return list;
}

RunModel::Usage RunModel::usage() const noexcept {
  std::size_t runs = 0;
  for (const auto& [uid, user] : users_) runs += user.runs().size();
  return {users_.size(), runs, shared_.processes, shared_.members, shared_.series};
}

}  // namespace gpumeter::jobs
