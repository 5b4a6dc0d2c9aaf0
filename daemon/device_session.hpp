#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "daemon/device_identity.hpp"
#include "daemon/device_workloads.hpp"
#include "daemon/observed_time.hpp"
#include "daemon/tier_schedule.hpp"
#include "exporter/frame.hpp"
#include "exporter/label_block.hpp"
#include "exporter/registry.hpp"

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

  /// Reads one tier, or goes on with it where it stepped aside, and commits what was read.
  PassOutcome run(Tier tier, const SamplingIntervals& intervals, const YieldCheck* yield);

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
  void enroll();
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
  ReadErrors past_errors_{};                    // of sinks before the last attach
  std::size_t own_slot_ = 0;                    // of the first series of own_series()
  std::unique_ptr<DeviceWorkloads> workloads_;  // null: not wanted, or the device does not list processes
};

}  // namespace gpumeter
