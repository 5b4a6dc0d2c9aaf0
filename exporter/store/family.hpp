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

/// The part of its family that a series is: the whole value, or a part of a histogram.
enum class SeriesPart : std::uint8_t { value, bucket, sum, count };

/// The suffix that follows the family's name in the name of such a series.
constexpr std::string_view suffix_of(SeriesPart part) noexcept {
  constexpr std::string_view kSuffixes[] = {"", "_bucket", "_sum", "_count"};
  return kSuffixes[static_cast<std::size_t>(part)];
}

/// The store's record of one source. Guarded by the store's mutex.
struct StoredSource {
  static constexpr std::uint64_t kRanks = ~std::uint64_t{0} >> 8;  ///< the largest one

  struct Slot {
    Family* family = nullptr;  ///< null: the slot is free
    Labels labels = {};
    std::uint64_t rank : 56 = 0;  ///< grows with each slot that is added
    SeriesPart part : 8 = SeriesPart::value;
  };

  std::string collector;
  std::string part;   ///< empty: no part's
  std::uint64_t age;  ///< grows with each source
  std::vector<Slot> slots = {};
  std::vector<double> since = {};  ///< Series::since() by slot; shorter than `slots` if no later slot has one
  Frame frame = Frame(0);
  Nanoseconds committed_at{};
  bool is_shown = false;  ///< committed and not hidden since
};

/// A series as passed to views. Valid during the walk.
class Series {
 public:
  Series(const StoredSource& source, std::size_t slot, std::size_t position) noexcept
      : source_(source), slot_(slot), position_(position) {}

  /// Position in the family's list, counting the series that a walk leaves out. Stable while
  /// Family::version() is unchanged.
  std::size_t position() const noexcept { return position_; }
  const Labels& labels() const noexcept { return source_.slots[slot_].labels; }
  SeriesPart part() const noexcept { return source_.slots[slot_].part; }
  double value() const noexcept { return source_.frame.values()[slot_]; }
  /// Unix time in seconds at which a counter was 0 and began to count; 0: unknown.
  double since() const noexcept { return slot_ < source_.since.size() ? source_.since[slot_] : 0; }
  /// Time of the source's last commit, by the monotonic clock.
  Nanoseconds committed_at() const noexcept { return source_.committed_at; }
  /// Empty if the source belongs to no collector.
  std::string_view collector() const noexcept { return source_.collector; }

 private:
  const StoredSource& source_;
  const std::size_t slot_;
  const std::size_t position_;
};

/// A family and its series. They are sorted by device index, then by the age of their source, then in the
/// order in which the source added them. Store::walk() passes families to views.
class Family {
 public:
  Family(const MetricDescriptor& descriptor, std::size_t id) : descriptor_(descriptor), id_(id) {}

  const MetricDescriptor& descriptor() const noexcept { return descriptor_; }
  /// Index of the family in its store: 0, 1, 2, ... in order of first use.
  std::size_t id() const noexcept { return id_; }
  /// Changes whenever the list of series changes; never 0. A view may cache what it derives from the list
  /// until then.
  std::uint64_t version() const noexcept { return version_; }

  /// Calls visit(labels, part) for every series of the list, in its order, including series that a walk
  /// leaves out now.
  template <class Visit>
  void for_each_listed(Visit&& visit) const {
    for (const Line& line : lines_) visit(line.stored().labels, line.stored().part);
  }

  /// Calls visit(const Series&) for each series that has a value.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t position = 0; position < lines_.size(); ++position) {
      const Line& line = lines_[position];
      const StoredSource& source = *line.source;
      if (!source.is_shown || line.is_shadowed) continue;
      if (source.frame.statuses()[line.slot] == ReadStatus::ok) visit(Series(source, line.slot, position));
    }
  }

 private:
  friend class Store;
  struct Line {
    const StoredSource* source;
    std::uint32_t slot;
    bool is_shadowed;  ///< a younger source has the same series

    const StoredSource::Slot& stored() const noexcept { return source->slots[slot]; }
  };

  void invalidate() noexcept;
  void arrange(std::uint64_t version);
  void shadow_duplicates();

  const MetricDescriptor& descriptor_;
  const std::size_t id_;
  std::uint64_t version_ = 0;  ///< 0: the list must be rebuilt
  std::vector<Line> lines_;
};

}  // namespace gpumeter
