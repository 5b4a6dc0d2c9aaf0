#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/descriptor.hpp"
#include "collectors/api/sample.hpp"
#include "exporter/store/frame.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

class Family;

/// What a series is of its family: all of it, or the part of a histogram that text formats mark by a suffix.
enum class Part : std::uint8_t { value, bucket, sum, count };

/// A series as views see it. Valid during the walk.
struct Series {
  std::size_t position;  ///< in its family, counting hidden ones: steady as long as Family::version()
  const Labels& labels;
  Part part;
  double value;
  Nanoseconds committed_at;    ///< when its source last committed, by the monotonic clock
  std::string_view collector;  ///< empty: its source belongs to none
};

/// What the store holds of one source. Guarded by the store's mutex.
struct StoredSource {
  struct Slot {
    Family* family = nullptr;  ///< null: the slot is free
    Labels labels = {};
    std::uint64_t rank = 0;  ///< grows with each slot that the source adds
    Part part = Part::value;
  };

  std::string collector;
  std::uint64_t age;  ///< grows with each source
  std::vector<Slot> slots = {};
  Frame frame = Frame(0);
  Nanoseconds committed_at{};
  bool is_shown = false;  ///< committed and not hidden since
};

/// A family and its series, sorted by device index, then by the age of their source, then by the order in
/// which the source added them. Given to views by Store::walk().
class Family {
 public:
  Family(const MetricDescriptor& descriptor, std::size_t id) : descriptor_(descriptor), id_(id) {}

  const MetricDescriptor& descriptor() const noexcept { return descriptor_; }
  /// The families of a store are counted from 0, in the order in which they were first used.
  std::size_t id() const noexcept { return id_; }
  /// Changes when the list of series does; never 0. A view may keep what it made of it until then.
  std::uint64_t version() const noexcept { return version_; }

  /// All series of the list, in its order, also those that a walk leaves out now: visit(labels, part).
  template <class Visit>
  void for_each_listed(Visit&& visit) const {
    for (const Line& line : lines_) visit(line.slot().labels, line.slot().part);
  }

  /// The series that have a value: visit(const Series&).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t position = 0; position < lines_.size(); ++position) {
      const Line& line = lines_[position];
      const StoredSource& source = *line.source;
      if (!source.is_shown || line.is_shadowed) continue;
      if (source.frame.statuses()[line.index] != ReadStatus::ok) continue;
      const StoredSource::Slot& slot = line.slot();
      visit(Series{position, slot.labels, slot.part, source.frame.values()[line.index], source.committed_at,
                   source.collector});
    }
  }

 private:
  friend class Store;
  struct Line {
    const StoredSource* source;
    std::uint32_t index;
    bool is_shadowed;  ///< a younger source has the same series

    const StoredSource::Slot& slot() const noexcept { return source->slots[index]; }
  };

  void invalidate() noexcept;
  void arrange(std::uint64_t version);
  void shadow_duplicates();

  const MetricDescriptor& descriptor_;
  const std::size_t id_;
  std::uint64_t version_ = 0;  ///< 0: the list is to be made again
  std::vector<Line> lines_;
};

}  // namespace gpumeter
