#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

/// Events that the compute driver reports for a card: counted by the event thread, read by the card's lane.
namespace gpumeter::amd {

/// A kind of event: the value of the label `event`, and the driver's number (linux/kfd_ioctl.h,
/// enum kfd_smi_event). A reset has one event before and one after it.
struct EventKind {
  std::string_view name;
  std::uint32_t number;
};
inline constexpr EventKind kEvents[] = {
    {"vm_fault", 1}, {"thermal_throttle", 2}, {"reset", 3}, {"reset_done", 4}};
inline constexpr std::size_t kEventCount = std::size(kEvents);

/// The driver numbers bits from event 1 on (KFD_SMI_EVENT_MASK_FROM_INDEX).
constexpr std::uint64_t mask_of(const EventKind& event) noexcept {
  return std::uint64_t{1} << (event.number - 1);
}

/// The counts of one card since the daemon's start, by place in kEvents. They outlive losses of the card. Any
/// thread.
class CardEvents {
 public:
  void count(std::size_t place) noexcept { counts_[place].fetch_add(1); }
  std::uint64_t count_of(std::size_t place) const noexcept { return counts_[place]; }

  /// Whether the driver reports events of the card now. Otherwise none are counted.
  void set_reported(bool reported) noexcept { is_reported_ = reported; }
  bool is_reported() const noexcept { return is_reported_; }

 private:
  std::array<std::atomic<std::uint64_t>, kEventCount> counts_{};
  std::atomic<bool> is_reported_ = false;
};

}  // namespace gpumeter::amd
