#include "exporter/history/events.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {
namespace {

constexpr std::size_t kMost = 64;

bool has(const std::vector<GpuReason>& reasons, const GpuReason& wanted) {
  return std::ranges::find(reasons, wanted.reason, &GpuReason::reason) != reasons.end();
}

}  // namespace

void GpuEvents::add(std::int64_t second, const GpuPicture& gpu) {
  const bool is_up = gpu.up.value_or(false);
  if (was_up_ && *was_up_ != is_up) keep({second, is_up ? "read_again" : "lost"});
  add_counts(second, gpu);
  add_reasons(second, gpu);
  was_up_ = is_up;
}

void GpuEvents::add_counts(std::int64_t second, const GpuPicture& gpu) {
  for (const auto& [name, count] : gpu.event_counts) {
    const auto [known, is_new] = counts_.try_emplace(name, was_up_ ? 0 : count);
    if (count > known->second) keep({second, name});
    known->second = count;
  }
}

void GpuEvents::add_reasons(std::int64_t second, const GpuPicture& gpu) {
  for (const GpuReason& reason : gpu.reasons) {
    if (!has(reasons_, reason)) keep({second, reason.reason, GpuEvent::Kind::finding});
  }
  for (const GpuReason& reason : reasons_) {
    if (!has(gpu.reasons, reason)) keep({second, reason.reason, GpuEvent::Kind::finding_ended});
  }
  reasons_ = gpu.reasons;
}

void GpuEvents::keep(GpuEvent event) {
  if (events_.size() >= kMost) events_.pop_front();
  events_.push_back(std::move(event));
}

}  // namespace gpumeter
