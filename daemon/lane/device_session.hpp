#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/api/sampling.hpp"
#include "collectors/attribution/device_workloads.hpp"
#include "daemon/state/device_totals.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// The times at which a lane reads each tier. Each tier has a fixed grid, so that the times do not drift.
/// After a late pass the next grid point follows, not a burst. Pure arithmetic; one thread.
class TierSchedule {
 public:
  /// `stagger` in [0, 1) shifts the grid by that fraction of the interval, so that the lanes of one driver do
  /// not start together.
  TierSchedule(const SamplingIntervals& intervals, Nanoseconds start, double stagger);

  struct Turn {
    Tier tier;
    Nanoseconds at;
  };
  /// Returns the next tier and its time. If several tiers are due, the fastest comes first.
  Turn next(Nanoseconds now) const noexcept;

  bool is_due(Tier tier, Nanoseconds now) const noexcept { return due(tier) <= now; }

  /// Records that the tier was read: its next turn is the first grid point after `now`. If reads failed, the
  /// next turn is kRetryEvery later if that is earlier, so that one failure does not hide a value for a whole
  /// minute. After kRetries such turns the failure counts as lasting, until more reads fail.
  void done(Tier tier, Nanoseconds now, std::uint64_t failed_reads = 0) noexcept;

  static constexpr Nanoseconds kRetryEvery = std::chrono::seconds(5);
  static constexpr int kRetries = 24;

 private:
  static constexpr std::size_t index(Tier tier) noexcept { return static_cast<std::size_t>(tier); }

  Nanoseconds due(Tier tier) const noexcept;

  struct Retry {
    std::optional<Nanoseconds> at;
    std::uint64_t failed_reads = 0;  // of the last turn
    int made = 0;                    // in a row
  };
  std::array<Nanoseconds, kTiers.size()> interval_{};
  std::array<Nanoseconds, kTiers.size()> due_{};  // on the grid
  std::array<Retry, kTiers.size()> retry_{};
};

/// The time over which a device's integrals are complete, by tier. The next complete pass covers an
/// incomplete one. A longer gap is not bridged and counts as not observed: a pass later than its deadline, a
/// suspend, or a loss. One thread.
class ObservedTime {
 public:
  /// Starts a pass. Returns the time since the tier's last complete pass, or zero if the gap cannot be
  /// bridged. A gap longer than `longest` (the tier's interval plus its deadline) is not bridged.
  Nanoseconds begin(Tier tier, const Clock& clock, Nanoseconds longest) noexcept;

  /// Ends the pass that began as complete; its integrals include `elapsed`.
  void complete(Tier tier, Nanoseconds elapsed) noexcept {
    last_[index(tier)] = begun_[index(tier)];
    total_[index(tier)] += elapsed;
  }

  /// Discards the time up to the next pass: the device is lost or sleeps.
  void interrupt(Tier tier) noexcept { last_[index(tier)].reset(); }
  void interrupt_all() noexcept { last_ = {}; }

  /// Continues from the time, in seconds, that an earlier process observed.
  void resume(Tier tier, double total) noexcept;

  Nanoseconds total(Tier tier) const noexcept { return total_[index(tier)]; }

 private:
  static constexpr std::size_t index(Tier tier) noexcept { return static_cast<std::size_t>(tier); }
  struct Moment {
    Nanoseconds monotonic;
    Nanoseconds suspended;  // boottime - monotonic: grows only while the machine sleeps
  };
  std::array<Moment, kTiers.size()> begun_{};
  std::array<std::optional<Moment>, kTiers.size()> last_{};  // the last complete pass
  std::array<Nanoseconds, kTiers.size()> total_{};
};

/// The limit of a pass. After it, the driver counts as hung: only this device stops reporting.
constexpr Nanoseconds pass_deadline(Tier tier) noexcept {
  return tier == Tier::slow || tier == Tier::once ? std::chrono::seconds(10) : std::chrono::seconds(3);
}

/// Moves one device's data from its driver to the store: attach, read a tier, commit. Adds gpu_info and the
/// observed time, and continues the counters that gpumeter counts from the totals of an earlier process. If
/// the driver lists processes, the session also adds the device's attribution. The session has no thread of
/// its own; calls block in the driver.
class DeviceSession {
 public:
  DeviceSession(std::unique_ptr<Device> device, DeviceIdentity identity, DeviceLabels labels,
                std::shared_ptr<Store> store, const Clock& clock, const WorkloadSettings& workloads = {},
                std::shared_ptr<DeviceTotals> totals = std::make_shared<DeviceTotals>());
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  /// Opens or reopens the device. Its series appear with the first commit.
  Result<Done> attach(const DeviceInfo& info);

  /// Reads one tier, or continues it where it yielded, and commits the readings. Nothing is committed before
  /// the first fast pass after attach(), or while the device is silent. The pass that ends a silence commits
  /// nothing either; call attach() then.
  PassOutcome run(Tier tier, const SamplingIntervals& intervals, const YieldCheck* yield);

  /// True while no read of the device succeeds: three fast passes in a row, or the first one after attach(),
  /// had no good reading. The page then omits its series.
  bool is_silent() const noexcept { return is_silent_; }
  /// Returns the failures of the last fast pass: "every read fails: denied 41, timeout 2".
  std::string trouble() const;

  /// Returns the number of failed reads in the tier's last pass.
  std::uint64_t failed_reads(Tier tier) const noexcept { return failed_[static_cast<std::size_t>(tier)]; }

  /// True if a source that was unreadable during attach() can be read now: rebind() then finds more series.
  bool has_more() noexcept;

  /// Opens the device again and reads all tiers. The old series stay on the page until the new ones replace
  /// them, and counters continue. Returns `gone` if the device could not be opened.
  PassOutcome rebind(const SamplingIntervals& intervals);

  /// Marks the device as lost: nothing is observed until the next attach().
  void lose();

  /// Closes the device until the next attach().
  void release();

  /// Removes the series from the page until the next commit. Any thread, also while run() hangs.
  void hide() noexcept { source_.hide(); }

  /// Changes the labels of the series with the next commit (config reload); the values stay.
  void relabel(const std::string& name, const DeviceLabels& labels);

  const DeviceIdentity& identity() const noexcept { return identity_; }
  const ReadErrors& errors() const noexcept { return errors_; }

 private:
  std::vector<SeriesSpec> own_series() const;
  std::vector<SeriesSpec> all_series() const;
  Labels labels() const;
  void renew_slots();
  /// Returns Series::since() of each series.
  std::vector<double> continue_totals(std::span<const SeriesSpec> series);
  void keep_totals() noexcept;
  void judge(PassOutcome outcome);
  void export_observed(Tier tier);
  void commit(const Pass& pass, PassOutcome outcome);

  const std::unique_ptr<Device> device_;
  const std::shared_ptr<Store> store_;
  const Clock& clock_;
  DeviceIdentity identity_;
  DeviceLabels which_labels_;
  ObservedTime observed_;
  std::array<std::optional<Pass>, kTiers.size()> unfinished_{};
  Source source_;  // its slots: the device's series, those of own_series(), and then those of workloads_
  bool is_attached_ = false;
  bool is_judged_ = false;  // a fast pass has ended since attach(): the series may be shown
  bool was_read_ = false;   // a fast pass had a good reading since attach()
  bool is_silent_ = false;
  bool is_rebinding_ = false;  // true while readings are not yet shown
  int unread_passes_ = 0;      // fast ones, in a row
  std::array<std::uint64_t, kTiers.size()> failed_{};
  ReadErrors fast_errors_{};  // of the last fast pass
  ReadErrors errors_{};       // of all passes
  const std::shared_ptr<DeviceTotals> totals_;
  std::set<std::string> resumed_;          // keys of the totals that were continued or had no earlier total
  std::vector<Source::Slot> counted_;      // the slots of the totals
  std::vector<DeviceTotals::Value> kept_;  // their values; a member, to reuse its memory
  Source::Slot own_slot_ = 0;              // of the first series of own_series()
  std::unique_ptr<DeviceWorkloads> workloads_;  // null: disabled, or the device does not list processes
};

}  // namespace gpumeter
