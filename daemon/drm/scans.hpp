#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "base/scheduler.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/sources/fdinfo/scanner.hpp"

namespace gpumeter {

/// The machine's scanner of /proc/PID/fdinfo. It is a job of the scheduler, which scans only while
/// a device is watched. A read of fdinfo that hangs in a driver is left behind on a further thread
/// ("drm-fdinfo"). Public methods: any thread; start(): the owner's.
class DrmScans final : public DrmUsers, public std::enable_shared_from_this<DrmScans> {
 public:
  /// `clock` must outlive this object; the scans have their own, which is the same
  /// time.
  DrmScans(fdinfo::Scanner::Sources sources, const Clock& clock);

  /// The scheduler's stop() ends the scans; it must outlive this object's calls.
  void start(Scheduler& scheduler);

  std::shared_ptr<void> watch(std::string_view device, Nanoseconds every) override GPUMETER_EXCLUDES(mutex_);
  std::shared_ptr<const DrmUse> use_of(std::string_view device) const override GPUMETER_EXCLUDES(mutex_);

  void scan_soon() override GPUMETER_EXCLUDES(mutex_);

  /// Of the last scan.
  struct Figures {
    double scan_seconds = 0;
    unsigned inaccessible = 0;    ///< processes whose descriptors are not all read
    std::uint64_t malformed = 0;  ///< lines of fdinfo since the start

    bool operator==(const Figures&) const = default;
  };
  /// nullopt while no device is watched, and before the first scan.
  std::optional<Figures> figures() const GPUMETER_EXCLUDES(mutex_);

 private:
  struct Wanted {
    std::vector<std::string> devices;
    Nanoseconds every{};  ///< the shortest interval of the watches
  };
  Nanoseconds turn();
  Wanted wanted() const GPUMETER_EXCLUDES(mutex_);
  void clear() GPUMETER_EXCLUDES(mutex_);
  void publish(fdinfo::Scanner::Result result) GPUMETER_EXCLUDES(mutex_);
  void end_watch(const std::string& device, Nanoseconds every) GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  fdinfo::Scanner scanner_;  // used only by the job
  Wakeable job_;
  mutable Mutex mutex_;
  std::map<std::string, std::multiset<Nanoseconds>> watches_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<const DrmUse>, std::less<>> uses_ GPUMETER_GUARDED_BY(mutex_);
  std::optional<Figures> figures_ GPUMETER_GUARDED_BY(mutex_);
  Nanoseconds next_extra_ GPUMETER_GUARDED_BY(mutex_){};  // CLOCK_MONOTONIC: the earliest scan by scan_soon()
  std::uint64_t malformed_ GPUMETER_GUARDED_BY(mutex_) = 0;
};

/// The clients of DRM devices for commands that print and exit: scans when it is told to, without a thread.
/// One thread.
class SingleScans final : public DrmUsers {
 public:
  explicit SingleScans(fdinfo::Scanner::Sources sources) : scanner_(std::move(sources)) {}

  /// Watches are for the object's lifetime.
  std::shared_ptr<void> watch(std::string_view device, Nanoseconds every) override;
  std::shared_ptr<const DrmUse> use_of(std::string_view device) const override;

  /// Looks at every process once, for kAtMost; does nothing if no device is watched. May block.
  void scan();
  static constexpr Nanoseconds kAtMost = std::chrono::seconds(2);

 private:
  fdinfo::Scanner scanner_;
  std::set<std::string, std::less<>> devices_;
  std::map<std::string, std::shared_ptr<const DrmUse>, std::less<>> uses_;
};

}  // namespace gpumeter
