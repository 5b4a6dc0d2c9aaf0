#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/api/buckets.hpp"
#include "collectors/api/descriptor.hpp"
#include "collectors/api/sample.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

/// The values of a source's slots: an array of doubles followed by status bytes, in one allocation. One
/// memcpy therefore copies a frame, and a frame could live in shared memory. A slot that was never written is
/// `unsupported`. One writer, no lock: a source fills its own frame and Source::commit() copies it into the
/// store.
class Frame {
 public:
  explicit Frame(std::size_t slots = 0);

  std::size_t size() const noexcept { return values_.size(); }
  SampleSink sink() noexcept { return {values_, statuses_}; }
  std::span<const double> values() const noexcept { return values_; }
  std::span<const ReadStatus> statuses() const noexcept { return statuses_; }

  /// Keeps the slots that still fit; new slots are marked as never written.
  void resize(std::size_t slots);
  /// Copies all slots from a frame of the same size. Never allocates.
  void copy_from(const Frame& other) noexcept;

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::span<double> values_;  ///< both spans point into memory_
  std::span<ReadStatus> statuses_;
};

class Family;

/// The store's record of one source. Guarded by the store's mutex.
struct StoredSource {
  static constexpr std::uint64_t kRanks = ~std::uint64_t{0} >> 9;  ///< the largest one

  struct Slot {
    Family* family = nullptr;  ///< null: the slot is free
    Labels labels = {};
    std::uint64_t rank : 55 = 0;  ///< grows with each slot that is added
    bool is_lasting : 1 = false;
    SeriesPart part : 8 = SeriesPart::value;
  };

  std::string collector;
  std::string part;   ///< empty: no part's
  std::uint64_t age;  ///< grows with each source; guests are older than all others
  std::vector<Slot> slots = {};
  std::vector<double> since = {};  ///< Series::since() by slot; shorter than `slots` if no later slot has one
  std::map<std::size_t, Exemplar> exemplars = {};  ///< by slot; few series have one
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
  /// The last one of a bucket; null: none.
  const Exemplar* exemplar() const noexcept {
    if (source_.exemplars.empty()) return nullptr;
    const auto found = source_.exemplars.find(slot_);
    return found == source_.exemplars.end() ? nullptr : &found->second;
  }
  /// The counter exists as long as its device, not with a job or an event.
  bool is_lasting() const noexcept { return source_.slots[slot_].is_lasting; }
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
  /// Index of the family in its store: 0, 1, 2, ... A family that is removed leaves its index to another one.
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

class Store;

/// A producer's place in the store: a device, the jobs, or the daemon itself. The producer adds one slot per
/// series, writes values into the slots and commits. Views see all of a commit or nothing. Store::attach()
/// creates a source; its destruction removes its series from the store. One thread, except hide().
class Source {
 public:
  using Slot = std::size_t;

  /// Adds a slot for this series; the slot has no value until one is written. The first slots of a source are
  /// 0, 1, 2, ...; dropped slots are reused. Slots and labels change in the store with the next commit.
  /// `since` and `is_lasting`: as those of Series, of a counter.
  Slot add(const MetricDescriptor& family, Labels labels, SeriesPart part = SeriesPart::value,
           double since = 0, bool is_lasting = false);
  /// Allocates room for this many slots in total.
  void reserve(std::size_t slots);
  /// Gives the slot's series other labels; its value and its exemplar are kept.
  void relabel(Slot slot, Labels labels);
  /// Never allocates, so that it may run while an exception for lack of memory passes.
  void drop(Slot slot) noexcept;
  /// Drops all slots; the next slot is 0.
  void clear();

  void set(Slot slot, double value) noexcept { sink().set(slot, value); }
  void miss(Slot slot, ReadStatus why) noexcept { sink().miss(slot, why); }
  /// Replaces the exemplar of a bucket. It stays until the slot is dropped.
  void exemplify(Slot slot, Exemplar exemplar) { exemplars_.insert_or_assign(slot, std::move(exemplar)); }
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
    Slot slot;
    const MetricDescriptor* family;  ///< null: the slot's series gets these labels
    Labels labels;
    SeriesPart part = SeriesPart::value;
    double since = 0;
    bool is_lasting = false;
  };

  struct Detach {
    Store* store;
    void operator()(StoredSource* source) const noexcept;
  };

  Source(Store& store, StoredSource& stored) noexcept : stored_(&stored, {&store}) {}
  Store& store() const noexcept { return *stored_.get_deleter().store; }
  bool has_changes() const noexcept { return is_cleared_ || has_drops_ || !changes_.empty(); }

  std::unique_ptr<StoredSource, Detach> stored_;  ///< null: moved from
  Frame frame_;
  Slot end_ = 0;                        ///< the first slot that was never used
  Slot free_ = kNone;                   ///< the slot that was dropped last
  std::vector<Slot> next_free_;         ///< by dropped slot: the one that was dropped before it, or kNone
  std::vector<Change> changes_;         ///< since the last commit
  std::map<Slot, Exemplar> exemplars_;  ///< since the last commit
  bool has_drops_ = false;              ///< since the last commit
  bool is_cleared_ = false;             ///< whether clear() was called before `changes_`
};

/// The names that a family occupies in any text format: its own, a counter's names in OpenMetrics, and the
/// names of a histogram's or summary's lines. No two families may share one.
std::vector<std::string> names_taken_by(const MetricDescriptor& family);

/// All series of all sources, for every view. Any thread, at any time. The mutex is held to copy a frame or
/// for one walk over the series, never during a driver call or a system call. The store outlives its sources.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Returns a source of this collector; if `collector` is empty, it belongs to none and is on every page.
  /// Its series appear with its first commit. If several sources have the same series, the youngest one shows
  /// it. `part`: for hide().
  Source attach(std::string_view collector = {}, std::string_view part = {});
  /// A source of this part for series that come from outside: if another source has the same series, that one
  /// shows it.
  Source attach_guest(std::string_view part);
  /// Removes the series of all sources of this part from all views until their next commits.
  void hide(std::string_view part) noexcept;

  /// Registers these families before any of their series exist, so that no declare() can take their names.
  /// The descriptors must outlive the store.
  void reserve(std::span<const MetricDescriptor* const> families);
  /// Declares a family for sources that are described only at run time; copies the strings. The name must be
  /// one that Prometheus accepts. Returns the existing family of this name if it has the same type and help
  /// text (an empty one is any); its unit then counts. Returns an Error if it differs, if a name of its lines
  /// in any format is another family's, or if there are too many.
  Result<const MetricDescriptor*> declare(const MetricDescriptor& family);
  /// Takes back one declare() that returned this family. With the last one a family that only declare() knows
  /// is removed, if none of its series is left.
  void release(const MetricDescriptor& family);

  /// Grows with every change that a view would show.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Calls visit(const Family&) for each family, sorted by name, and returns the generation that was walked.
  /// The mutex is held during the walk: commits wait, and `visit` must not call the store.
  std::uint64_t walk(const std::function<void(const Family&)>& visit) const;
  /// The same, for views that take long and need no common moment: commits and other walks come in between
  /// any two families.
  void walk_in_slices(const std::function<void(const Family&)>& visit) const;

 private:
  friend class Source;
  struct Declared {
    std::string name, help, unit;
    MetricDescriptor descriptor;
    std::size_t holders = 1;  ///< calls of declare() without their release()
  };

  void commit(StoredSource& source, Source& with, Nanoseconds now);
  void hide(StoredSource& source) noexcept;
  void detach(StoredSource& source) noexcept;

  Source attach(std::string_view collector, std::string_view part, std::uint64_t age)
      GPUMETER_REQUIRES(mutex_);
  Family& family(const MetricDescriptor& descriptor) GPUMETER_REQUIRES(mutex_);
  Declared* declared(const MetricDescriptor& descriptor) noexcept GPUMETER_REQUIRES(mutex_);
  const Family* colliding_with(const MetricDescriptor& wanted) const GPUMETER_REQUIRES(mutex_);
  void apply(StoredSource& source, const Source& with) GPUMETER_REQUIRES(mutex_);
  void clear(StoredSource& source) noexcept GPUMETER_REQUIRES(mutex_);
  void free(StoredSource& source, std::size_t slot) noexcept GPUMETER_REQUIRES(mutex_);
  void invalidate(Family& family) noexcept GPUMETER_REQUIRES(mutex_);
  void arrange() const GPUMETER_REQUIRES(mutex_);
  void changed() noexcept GPUMETER_REQUIRES(mutex_) { generation_.fetch_add(1, std::memory_order_release); }

  std::atomic<std::uint64_t> generation_{0};

  mutable Mutex mutex_;
  static constexpr std::uint64_t kFirstAge = std::uint64_t{1} << 32U;  ///< guests are before it
  std::uint64_t ages_ GPUMETER_GUARDED_BY(mutex_) = kFirstAge;
  std::uint64_t guest_ages_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::uint64_t ranks_ GPUMETER_GUARDED_BY(mutex_) = 0;
  mutable std::uint64_t versions_ GPUMETER_GUARDED_BY(mutex_) = 0;
  /// Some families' lists must be rebuilt. Hundreds of sources attach at start, so the next walk rebuilds the
  /// lists once.
  mutable bool is_disarranged_ GPUMETER_GUARDED_BY(mutex_) = false;
  std::map<std::uint64_t, StoredSource> sources_ GPUMETER_GUARDED_BY(mutex_);        ///< by age
  mutable std::map<std::string_view, Family> families_ GPUMETER_GUARDED_BY(mutex_);  ///< by name
  std::list<Declared> declared_ GPUMETER_GUARDED_BY(mutex_);
  std::vector<std::size_t> free_ids_ GPUMETER_GUARDED_BY(mutex_);  ///< of families that were removed
};

}  // namespace gpumeter
