#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/attribution/device_workloads.hpp"
#include "daemon/lane/observed_time.hpp"
#include "daemon/lane/tier_schedule.hpp"
#include "exporter/store/frame.hpp"
#include "exporter/store/label_block.hpp"
#include "exporter/store/registry.hpp"

namespace gpumeter {

/// How long a pass may take before its device counts as stuck (design: a hung driver call costs that
/// device its numbers, and nobody else anything).
constexpr Nanoseconds pass_deadline(Tier tier) noexcept {
  return tier == Tier::slow || tier == Tier::once ? std::chrono::seconds(10) : std::chrono::seconds(3);
}

/// One device from its driver to the registry: attach, read a tier, commit. Adds what the daemon itself
/// knows of the device: gpu_info, the observed time and, where the device tells its processes, who uses it.
/// No thread of its own; calls block in the driver.
class DeviceSession {
 public:
  DeviceSession(std::unique_ptr<Device> device, DeviceIdentity identity, DeviceLabels labels,
                std::shared_ptr<Registry> registry, const Clock& clock,
                const WorkloadSettings& workloads = {});
  ~DeviceSession();
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  /// (Re)opens the device and puts its series into the registry; they show up with the first commit.
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
  void hide() const { registry_->hide(source_); }

  /// Puts the series under new labels (config reload); values stay.
  void relabel(const std::string& name, const DeviceLabels& labels);

  const DeviceIdentity& identity() const noexcept { return identity_; }
  ReadErrors errors() const noexcept;

 private:
  static constexpr SourceId kNoSource{};  // the registry knows none of this id
  std::vector<SeriesSpec> own_series() const;
  void renew_frame();
  SourceId enroll() const;
  void judge(PassOutcome outcome);
  void export_observed(Tier tier);
  void commit(const Pass& pass, PassOutcome outcome);

  const std::unique_ptr<Device> device_;
  const std::shared_ptr<Registry> registry_;
  const Clock& clock_;
  DeviceIdentity identity_;
  DeviceLabels labels_;
  ObservedTime observed_;
  std::array<std::optional<Pass>, kTiers.size()> unfinished_{};
  std::atomic<SourceId> source_{kNoSource};  // changed by the lane, read by who hides it
  std::unique_ptr<Frame> frame_;
  std::optional<SampleSink> sink_;
  bool is_judged_ = false;  // a fast pass has ended since attach(): the series may be shown
  bool was_read_ = false;   // a fast pass had a good reading since attach()
  bool is_silent_ = false;
  bool is_rebinding_ = false;  // what is read is not shown yet
  int unread_passes_ = 0;      // fast ones, in a row
  std::array<std::uint64_t, kTiers.size()> failed_{};
  ReadErrors fast_errors_{};                    // of the last fast pass
  ReadErrors past_errors_{};                    // of sinks before the last attach
  std::size_t own_slot_ = 0;                    // of the first series of own_series()
  std::unique_ptr<DeviceWorkloads> workloads_;  // null: not wanted, or the device does not list processes
};

}  // namespace gpumeter
