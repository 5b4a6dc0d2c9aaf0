#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/history/picture.hpp"

namespace gpumeter {

/// Something that happened to a GPU between two pictures.
struct GpuEvent {
  enum class Kind : std::uint8_t {
    event,          ///< xid_CODE, an event of gpu_events_total, or `lost` and `read_again` for gpu_up
    finding,        ///< a reason of gpu_health_reason holds
    finding_ended,  ///< it does not hold any longer
  };
  std::int64_t second = 0;
  std::string name;
  Kind kind = Kind::event;
};
constexpr std::string_view to_string(GpuEvent::Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"event", "finding", "finding_ended"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// Finds the events of one GPU by comparing its pictures; keeps the last 64. Not for several threads.
class GpuEvents {
 public:
  /// Counters that the first picture already has are no events.
  void add(std::int64_t second, const GpuPicture& gpu);

  const std::deque<GpuEvent>& events() const noexcept { return events_; }

 private:
  void add_counts(std::int64_t second, const GpuPicture& gpu);
  void add_reasons(std::int64_t second, const GpuPicture& gpu);
  void keep(GpuEvent event);

  std::deque<GpuEvent> events_;  // the oldest first
  std::optional<bool> was_up_;   // nullopt: no picture yet
  /// Counters are not removed while their series is absent, such as that of a lost GPU.
  std::map<std::string, double> counts_;
  std::vector<GpuReason> reasons_;
};

}  // namespace gpumeter
