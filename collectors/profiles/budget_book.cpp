#include "collectors/profiles/budget_book.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/records.hpp"

namespace gpumeter::profiles {
namespace {

constexpr Nanoseconds kDay = std::chrono::hours(24);
constexpr std::string_view kSpent = "spent";

}  // namespace

// Returns the time now.
Nanoseconds BudgetBook::forget_old() {
  const Nanoseconds now = clock_.boottime();
  while (!spent_.empty() && now - spent_.front().boot >= kDay) spent_.pop_front();
  return now;
}

std::optional<std::string> BudgetBook::refusal(const RunName& run) {
  const MutexLock lock(mutex_);
  const Nanoseconds now = forget_old();
  if (spent_.size() >= budget_.per_host) return "the machine's budget of the day is spent";
  const auto is_of_run = [&](const Spent& each) { return each.run == run; };
  if (std::ranges::count_if(spent_, is_of_run) >= budget_.per_run) {
    return "the run's budget of the day is spent";
  }
  const auto last = std::ranges::find_if(std::views::reverse(spent_), is_of_run);
  if (last != spent_.rend() && now - last->boot < budget_.cooldown) {
    return "the run was profiled a short time ago";
  }
  return std::nullopt;
}

void BudgetBook::spend(const RunName& run) {
  const MutexLock lock(mutex_);
  const Nanoseconds now = forget_old();
  spent_.push_back({run, now, clock_.realtime()});
}

std::string BudgetBook::save() {
  RecordWriter out;
  const MutexLock lock(mutex_);
  forget_old();
  for (const Spent& each : spent_) {
    out.begin(kSpent).text(each.run.user).text(each.run.run).time(each.boot).time(each.unix);
  }
  return out.take();
}

Result<Done> BudgetBook::load(std::string_view section, bool is_of_this_boot) {
  const Nanoseconds boot = clock_.boottime();
  const Nanoseconds unix = clock_.realtime();
  std::deque<Spent> earlier;
  RecordReader in(section);
  while (in.next()) {
    if (in.kind() != kSpent) in.fail();
    Spent spent{{in.text(), in.text()}, in.time(), in.time()};
    const Nanoseconds since_boot = std::clamp(spent.boot, boot - kDay, boot);
    const Nanoseconds since_1970 = std::clamp(spent.unix, unix - kDay, unix);
    spent.boot = is_of_this_boot ? since_boot : boot - (unix - since_1970);
    if (in.has_field()) in.fail();
    earlier.push_back(std::move(spent));
  }
  if (in.failed()) return Error("the budget of profiles, line " + std::to_string(in.line()));
  std::ranges::stable_sort(earlier, {}, &Spent::boot);
  const MutexLock lock(mutex_);
  spent_ = std::move(earlier);
  return Done{};
}

}  // namespace gpumeter::profiles
