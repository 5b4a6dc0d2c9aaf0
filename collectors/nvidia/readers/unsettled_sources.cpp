#include "collectors/nvidia/readers/unsettled_sources.hpp"

#include <algorithm>
#include <utility>

#include "collectors/nvidia/nvml/return_code.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr Nanoseconds kFirstLook = std::chrono::seconds(4);
constexpr Nanoseconds kRarest = std::chrono::minutes(5);

}  // namespace

void UnsettledSources::open() noexcept {
  waiting_.clear();
  next_look_ = {};
  if (std::exchange(binds_again_, false)) return;
  set_aside_.clear();
  interval_ = kFirstLook;
}

bool UnsettledSources::admit(const Key& key, Reader probe) {
  const bool is_admitted = std::ranges::find(set_aside_, key) == set_aside_.end();
  waiting_.push_back({key, std::move(probe), is_admitted});
  return is_admitted;
}

void UnsettledSources::await(const Key& key, Reader probe) {
  if (std::ranges::find(waiting_, key, &Source::key) == waiting_.end())
    waiting_.push_back({key, std::move(probe), false});
}

bool UnsettledSources::is_time(Nanoseconds now) noexcept {
  if (next_look_ == Nanoseconds{0}) next_look_ = now + interval_;
  if (now < next_look_) return false;
  interval_ = std::min(interval_ * 2, kRarest);
  next_look_ = now + interval_;
  return true;
}

bool UnsettledSources::look() {
  bool changes = false;
  std::erase_if(waiting_, [&](Source& source) { return is_settled(source, changes); });
  binds_again_ = binds_again_ || changes;
  return changes;
}

// A source that is not bound and fails in a different way stays unbound, so nothing changes.
bool UnsettledSources::is_settled(Source& source, bool& changes) {
  const ReadStatus status = source.probe().status;
  if (status == ReadStatus::gone) return false;
  if (may_pass(status)) {
    if (std::exchange(source.is_bound, false)) {
      set_aside_.push_back(source.key);
      changes = true;
    }
    return false;
  }
  const bool is_lost = is_lacking(status);
  changes = changes || source.is_bound == is_lost;
  if (!is_lost) std::erase(set_aside_, source.key);
  return true;
}

}  // namespace gpumeter::nvidia
