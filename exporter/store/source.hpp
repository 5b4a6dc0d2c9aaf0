#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "exporter/store/family.hpp"
#include "exporter/store/frame.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

class Store;

/// A producer's place in the store: a device, the jobs, or the daemon itself. The producer adds one slot per
/// series, writes values into the slots and commits. Views see all of a commit or nothing. Store::attach()
/// creates a source; its destruction removes its series from the store. One thread, except hide().
class Source {
 public:
  using Slot = std::size_t;

  Source(Source&& other) noexcept;
  Source& operator=(Source&& other) noexcept;
  ~Source();

  /// Adds a slot for this series; the slot has no value until one is written. The first slots of a source are
  /// 0, 1, 2, ...; dropped slots are reused. Slots and labels change in the store with the next commit.
  /// `since`: as Series::since(), of a counter.
  Slot add(const MetricDescriptor& family, Labels labels, SeriesPart part = SeriesPart::value,
           double since = 0);
  /// Allocates room for this many slots in total.
  void reserve(std::size_t slots);
  /// Gives the slot's series other labels; its value is kept.
  void relabel(Slot slot, Labels labels);
  /// Never allocates, so that it may run while an exception for lack of memory passes.
  void drop(Slot slot) noexcept;
  /// Drops all slots; the next slot is 0.
  void clear();

  void set(Slot slot, double value) noexcept { sink().set(slot, value); }
  void miss(Slot slot, ReadStatus why) noexcept { sink().miss(slot, why); }
  /// For a device that fills the slots itself. Valid until slots are added or cleared.
  SampleSink sink() noexcept { return frame_.sink(); }
  /// All written values, committed or not.
  const Frame& frame() const noexcept { return frame_; }

  /// Shows the slots and their values as of `now`, by the monotonic clock. Allocates only if the slots
  /// changed.
  void commit(Nanoseconds now);
  /// Removes the series from all views until the next commit. Any thread.
  void hide() noexcept;

 private:
  friend class Store;
  static constexpr Slot kNone = static_cast<Slot>(-1);
  struct Change {
    enum class Kind : std::uint8_t { add, relabel };
    Kind kind;
    Slot slot;
    const MetricDescriptor* family = nullptr;
    Labels labels = {};
    SeriesPart part = SeriesPart::value;
    double since = 0;
  };

  Source(Store& store, StoredSource& stored) noexcept : store_(&store), stored_(&stored) {}

  Store* store_;  ///< null: moved from
  StoredSource* stored_;
  Frame frame_;
  Slot end_ = 0;                 ///< the first slot that was never used
  Slot free_ = kNone;            ///< the slot that was dropped last
  std::vector<Slot> next_free_;  ///< by dropped slot: the one that was dropped before it, or kNone
  std::vector<Change> changes_;  ///< since the last commit
  bool has_drops_ = false;       ///< since the last commit
  bool is_cleared_ = false;      ///< whether clear() was called before `changes_`
};

}  // namespace gpumeter
