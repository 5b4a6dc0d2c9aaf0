#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectors/table/reader.hpp"

namespace gpumeter::nvidia {

/// Sources whose first reading at attach failed in a way that may pass (UNKNOWN, TIMEOUT). Their rows are
/// bound nevertheless. If such a source still fails at the next look, it is set aside: the GPU is bound again
/// without it, so that the next row of the series is used. The source is then read at growing intervals. Lane
/// thread.
class UnsettledSources {
 public:
  /// Identifies a row: name and argument of its ReadSource, and the target of the binding. A key without a
  /// name stands for a source that several rows share.
  struct Key {
    const char* name;
    std::uint64_t argument;
    std::size_t target;
    bool operator==(const Key&) const = default;
  };

  /// Called when the GPU is opened. Sources stay set aside if look() caused the new binding.
  void open() noexcept;

  /// At attach: the first reading failed. Returns false if the source is set aside, and the row must not be
  /// bound. look() reads through `probe`.
  bool admit(const Key& key, Reader probe);

  /// At attach: a row cannot be bound without a first reading. look() reads again, once for all rows with the
  /// same key.
  void await(const Key& key, Reader probe);

  /// The GPU will be bound again for a reason other than look().
  void bind_again() noexcept { binds_again_ = true; }

  bool empty() const noexcept { return waiting_.empty(); }

  /// True when the next look() is due.
  bool is_time(Nanoseconds now) noexcept;

  /// Reads each source. Returns true if binding the GPU again would now bind other rows.
  bool look();

 private:
  struct Source {
    Key key;
    Reader probe;
    bool is_bound;
  };
  bool is_settled(Source& source, bool& changes);

  std::vector<Source> waiting_;
  std::vector<Key> set_aside_;
  Nanoseconds interval_{};
  Nanoseconds next_look_{};  // zero: the first call of is_time() sets it
  bool binds_again_ = false;
};

/// Whether a first reading with this status may succeed later.
constexpr bool may_pass(ReadStatus status) noexcept {
  return status == ReadStatus::failed || status == ReadStatus::timeout;
}

}  // namespace gpumeter::nvidia
