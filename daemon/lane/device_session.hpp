#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/attribution/device_workloads.hpp"
#include "daemon/lane/observed_time.hpp"
#include "daemon/lane/tier_schedule.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// How long a pass may take before its device counts as stuck (design: a hung driver call costs that
/// device its numbers, and nobody else anything).
constexpr Nanoseconds pass_deadline(Tier tier) noexcept {
  return tier == Tier::slow || tier == Tier::once ? std::chrono::seconds(10) : std::chrono::seconds(3);
}

/// One device from its driver to the store: attach, read a tier, commit. Adds gpu_info, the observed time
/// and, if the driver lists processes, who uses the device. No thread of its own; calls block in the driver.
class DeviceSession {
 public:
  DeviceSession(std::unique_ptr<Device> device, DeviceIdentity identity, DeviceLabels labels,
                std::shared_ptr<Store> store, const Clock& clock, const WorkloadSettings& workloads = {});
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  /// (Re)opens the device; its series show up with the first commit.
  Result<Done> attach(const DeviceInfo& info);

  /// Reads one tier, or goes on with it where it stepped aside, and commits what was read. Nothing is
  /// committed before the first fast pass after attach(), nor while the device is silent or by the pass that
  /// ends its silence: attach() is due then.
  PassOutcome run(Tier tier, const SamplingIntervals& intervals, const YieldCheck* yield);

  /// True while no read of the device succeeds: three fast passes in a row had no good reading, or the first
  /// one after attach() had none. Its series are off the page.
  bool is_silent() const noexcept { return is_silent_; }
  /// How the reads of the last fast pass failed: "every read fails: denied 41, timeout 2".
  std::string trouble() const;

  /// Reads of the tier's last pass that failed.
  std::uint64_t failed_reads(Tier tier) const noexcept { return failed_[static_cast<std::size_t>(tier)]; }

  /// True if a source that could not be read during attach() can be read now: rebind() finds more series.
  bool has_more() noexcept;

  /// Opens the device again and reads all tiers. The old series stay on the page until the new ones take
  /// their place, and counters go on. `gone`: the device could not be opened.
  PassOutcome rebind(const SamplingIntervals& intervals);

  /// The device is lost: nothing is observed until it is attached again.
  void lose();

  /// Closes the device until it is attached again.
  void release();

  /// Takes the series off the page until the next commit. Any thread, also while run() hangs.
  void hide() noexcept { source_.hide(); }

  /// Gives the series other labels with the next commit (config reload); values stay.
  void relabel(const std::string& name, const DeviceLabels& labels);

  const DeviceIdentity& identity() const noexcept { return identity_; }
  const ReadErrors& errors() const noexcept { return errors_; }

 private:
  std::vector<SeriesSpec> own_series() const;
  std::vector<SeriesSpec> all_series() const;
  Labels labels() const;
  void renew_slots();
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
  bool is_rebinding_ = false;  // what is read is not shown yet
  int unread_passes_ = 0;      // fast ones, in a row
  std::array<std::uint64_t, kTiers.size()> failed_{};
  ReadErrors fast_errors_{};                    // of the last fast pass
  ReadErrors errors_{};                         // of all passes
  Source::Slot own_slot_ = 0;                   // of the first series of own_series()
  std::unique_ptr<DeviceWorkloads> workloads_;  // null: not wanted, or the device does not list processes
};

}  // namespace gpumeter
