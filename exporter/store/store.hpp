#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/api/descriptor.hpp"
#include "exporter/store/family.hpp"
#include "exporter/store/source.hpp"

namespace gpumeter {

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
  /// Removes the series of all sources of this part from all views until their next commits.
  void hide(std::string_view part) noexcept;

  /// Registers these families before any of their series exist, so that no declare() can take their names.
  /// The descriptors must outlive the store.
  void reserve(std::span<const MetricDescriptor* const> families);
  /// Declares a family for sources that are described only at run time; copies the strings. Returns the
  /// existing family of this name if it is identical. Returns an Error if it differs, or if there are too
  /// many. The name must also follow the catalogue's rules and must not collide with a line of another
  /// family.
  Result<const MetricDescriptor*> declare(const MetricDescriptor& family);

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
  };

  void commit(StoredSource& source, const Frame& frame, Nanoseconds now) noexcept;
  void commit(StoredSource& source, const Source& with, Nanoseconds now);
  void hide(StoredSource& source) noexcept;
  void detach(StoredSource& source) noexcept;

  Family& family(const MetricDescriptor& descriptor) GPUMETER_REQUIRES(mutex_);
  void apply(StoredSource& source, const Source& with) GPUMETER_REQUIRES(mutex_);
  void free_dropped(StoredSource& source, const Source& with) noexcept GPUMETER_REQUIRES(mutex_);
  void show(StoredSource& source, const Frame& frame, Nanoseconds now) noexcept GPUMETER_REQUIRES(mutex_);
  void clear(StoredSource& source) noexcept GPUMETER_REQUIRES(mutex_);
  void free(StoredSource::Slot& slot) noexcept GPUMETER_REQUIRES(mutex_);
  void invalidate(Family& family) noexcept GPUMETER_REQUIRES(mutex_);
  void arrange() const GPUMETER_REQUIRES(mutex_);
  void changed() noexcept GPUMETER_REQUIRES(mutex_) { generation_.fetch_add(1, std::memory_order_release); }

  std::atomic<std::uint64_t> generation_{0};

  mutable Mutex mutex_;
  std::uint64_t ages_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::uint64_t ranks_ GPUMETER_GUARDED_BY(mutex_) = 0;
  mutable std::uint64_t versions_ GPUMETER_GUARDED_BY(mutex_) = 0;
  /// Some families' lists must be rebuilt. Hundreds of sources attach at start, so the next walk rebuilds the
  /// lists once.
  mutable bool is_disarranged_ GPUMETER_GUARDED_BY(mutex_) = false;
  std::map<std::uint64_t, StoredSource> sources_ GPUMETER_GUARDED_BY(mutex_);        ///< by age
  mutable std::map<std::string_view, Family> families_ GPUMETER_GUARDED_BY(mutex_);  ///< by name
  std::list<Declared> declared_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
