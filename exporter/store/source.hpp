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

/// A producer's place in the store: a device, the jobs, the daemon itself. The producer adds slots, one for
/// each series, writes values into them and commits; views see all of a commit or nothing. Made by
/// Store::attach(); its series leave the store with it. One thread, but for hide().
class Source {
 public:
  using Slot = std::size_t;

  Source(Source&& other) noexcept;
  Source& operator=(Source&& other) noexcept;
  ~Source();

  /// A slot for this series, which has no value until one is written. The first slots of a source are 0, 1,
  /// 2, ...; dropped ones are used again. Slots and labels change in the store with the next commit.
  Slot add(const MetricDescriptor& family, Labels labels, Part part = Part::value);
  /// Makes room for this many slots at once.
  void reserve(std::size_t slots);
  /// Gives the slot's series other labels; its value stays.
  void relabel(Slot slot, Labels labels);
  void drop(Slot slot);
  /// Drops all slots; the next one is 0.
  void clear();

  void set(Slot slot, double value) noexcept { sink().set(slot, value); }
  void miss(Slot slot, ReadStatus why) noexcept { sink().miss(slot, why); }
  /// Writes to the slots, for a device to fill. Valid until slots are added or cleared.
  SampleSink sink() noexcept { return frame_.sink(); }
  /// What was written, committed or not.
  const Frame& frame() const noexcept { return frame_; }

  /// Shows the slots and their values as of `now`, by the monotonic clock. Allocates only if slots changed.
  void commit(Nanoseconds now);
  /// Takes the series off all views until the next commit. Any thread.
  void hide() noexcept;

 private:
  friend class Store;
  struct Change {
    enum class Kind : std::uint8_t { add, relabel, drop };
    Kind kind;
    Slot slot;
    const MetricDescriptor* family = nullptr;
    Labels labels = {};
    Part part = Part::value;
  };

  Source(Store& store, StoredSource& stored) noexcept : store_(&store), stored_(&stored) {}

  Store* store_;  ///< null: moved from
  StoredSource* stored_;
  Frame frame_;
  Slot end_ = 0;                 ///< the first slot that was never used
  std::vector<Slot> free_;       ///< those below it that were dropped
  std::vector<Change> changes_;  ///< since the last commit
  bool is_cleared_ = false;      ///< before `changes_`
};

}  // namespace gpumeter
