#include "collectors/intel/clients.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>

namespace gpumeter::intel {
namespace {

constexpr auto kEvery = std::chrono::seconds(10);
constexpr auto kOld = std::chrono::seconds(60);  // a scan may be late on a busy machine

/// The most that one class has grown.
double growth_of(const EngineSeconds& before, const EngineSeconds& now) noexcept {
  double most = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i]) most = std::max(most, *now[i] - before[i].value_or(0));
  }
  return most;
}

}  // namespace

void Clients::watch(bool wanted) noexcept try {
  if (!wanted) {
    watch_.reset();
  } else if (users_ && !watch_) {
    watch_ = users_->watch(address_, kEvery);
  }
} catch (const std::exception&) {  // out of memory: the next pass tries again
  watch_.reset();
}

const EngineTimes& Clients::read(Nanoseconds now) noexcept {
  const std::shared_ptr<const DrmUse> use = users_ ? users_->use_of(address_) : nullptr;
  if (!use) return times_;
  const bool is_first = times_.status == ReadStatus::unsupported;
  times_.status = now - use->scanned_at > kOld ? ReadStatus::timeout : ReadStatus::ok;
  if (!is_first && use->observed == times_.at) return times_;
  if (!is_first) times_.busiest += growth_of(times_.seconds, use->busy_seconds);
  times_.seconds = use->busy_seconds;
  times_.at = use->observed;
  return times_;
}

bool Clients::have_worked(Nanoseconds now) noexcept {
  const double busiest = read(now).busiest;
  return std::exchange(noted_, busiest) != busiest;
}

}  // namespace gpumeter::intel
