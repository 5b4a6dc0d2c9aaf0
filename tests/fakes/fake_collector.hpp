#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/collector.hpp"

namespace gpumeter {

/// A machine of fake devices that a test hangs, removes and adds while they are read. Each device has one
/// series, gpu_power_watts. Any thread.
class FakeMachine {
 public:
  void plug(const DeviceInfo& info) {
    MutexLock lock(mutex_);
    plugged_[info.uuid] = info;
    unlisted_.erase(info.uuid);
    changed_.notify_all();
  }
  void pull(const std::string& uuid) {
    MutexLock lock(mutex_);
    plugged_.erase(uuid);
  }
  /// The device's calls return, but none with a value.
  void fail(const std::string& uuid, bool fails) {
    MutexLock lock(mutex_);
    failing_[uuid] = fails;
  }
  bool fails(const std::string& uuid) {
    MutexLock lock(mutex_);
    return failing_[uuid];
  }
  /// Removes the device from the list while its calls still answer, as open files of a removed folder do.
  void unlist(const std::string& uuid) {
    MutexLock lock(mutex_);
    unlisted_.insert(uuid);
  }
  void hang(const std::string& uuid, bool hangs) {
    MutexLock lock(mutex_);
    hanging_[uuid] = hangs;
    changed_.notify_all();
  }

  /// The device's passes return, but the look for more sources after them does not.
  void hang_look(const std::string& uuid, bool hangs) {
    MutexLock lock(mutex_);
    look_hanging_[uuid] = hangs;
    changed_.notify_all();
  }

  std::vector<DeviceInfo> devices() const {
    MutexLock lock(mutex_);
    std::vector<DeviceInfo> devices;
    for (const auto& [uuid, info] : plugged_) {
      if (!unlisted_.contains(uuid)) devices.push_back(info);
    }
    return devices;
  }

  /// One driver call. Returns false if the device is gone; does not return while the device hangs.
  bool call(const std::string& uuid) {
    MutexLock lock(mutex_);
    ++calls_[uuid];
    ++inside_;
    most_inside_ = std::max(most_inside_, inside_);
    if (lingers_) changed_.wait_for(mutex_, std::chrono::milliseconds(2));
    while (hanging_[uuid]) changed_.wait_for(mutex_, std::chrono::milliseconds(100));
    --inside_;
    return plugged_.contains(uuid);
  }
  /// Does not return while the look hangs.
  void look(const std::string& uuid) {
    MutexLock lock(mutex_);
    if (look_hanging_[uuid]) ++looks_;
    while (look_hanging_[uuid]) changed_.wait_for(mutex_, std::chrono::milliseconds(100));
  }
  /// Returns how many looks have hung.
  int looks() const {
    MutexLock lock(mutex_);
    return looks_;
  }
  void open(const std::string& uuid, bool is_open) {
    MutexLock lock(mutex_);
    open_[uuid] = is_open;
  }
  bool is_open(const std::string& uuid) {
    MutexLock lock(mutex_);
    return open_[uuid];
  }
  int calls(const std::string& uuid) {
    MutexLock lock(mutex_);
    return calls_[uuid];
  }
  /// Calls take a moment, so that several can be in progress at once.
  void linger() {
    MutexLock lock(mutex_);
    lingers_ = true;
  }
  int most_inside() const {
    MutexLock lock(mutex_);
    return most_inside_;
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::string, DeviceInfo> plugged_ GPUMETER_GUARDED_BY(mutex_);
  std::set<std::string> unlisted_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, bool> hanging_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, bool> look_hanging_ GPUMETER_GUARDED_BY(mutex_);
  int looks_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::map<std::string, bool> failing_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, bool> open_ GPUMETER_GUARDED_BY(mutex_);
  int inside_ GPUMETER_GUARDED_BY(mutex_) = 0;
  int most_inside_ GPUMETER_GUARDED_BY(mutex_) = 0;
  bool lingers_ GPUMETER_GUARDED_BY(mutex_) = false;
};

class FakeDevice final : public Device {
 public:
  FakeDevice(std::shared_ptr<FakeMachine> machine, std::string uuid)
      : machine_(std::move(machine)), uuid_(std::move(uuid)) {}

  Result<Done> attach(const DeviceInfo&) override {
    machine_->open(uuid_, true);
    return Done{};
  }
  void release() noexcept override { machine_->open(uuid_, false); }
  std::span<const SeriesSpec> series() const override { return series_; }
  PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept override {
    if (!machine_->call(uuid_)) return PassOutcome::gone;
    if (machine_->fails(uuid_)) {
      sink.miss(0, ReadStatus::denied);
      sink.count_error(ReadStatus::denied);
      return PassOutcome::unread;
    }
    if (pass.tier == Tier::fast) sink.set(0, 100);
    return PassOutcome::complete;
  }
  bool has_more(Nanoseconds) noexcept override {
    machine_->look(uuid_);
    return false;
  }

 private:
  const std::shared_ptr<FakeMachine> machine_;
  const std::string uuid_;
  const std::vector<SeriesSpec> series_ = {{&catalog::power, {}}};
};

class FakeCollector final : public Collector {
 public:
  explicit FakeCollector(std::shared_ptr<FakeMachine> machine) : machine_(std::move(machine)) {}

  Result<Discovery> discover() override { return Discovery{machine_->devices(), {}}; }
  std::unique_ptr<Device> device(const DeviceInfo& info) override {
    return std::make_unique<FakeDevice>(machine_, info.uuid);
  }

 private:
  const std::shared_ptr<FakeMachine> machine_;
};

/// An entry opens its collector through a plain function, so the options carry the machine's address.
inline Result<std::unique_ptr<Collector>> open_fake(const CollectorContext& context) {
  const std::string& address = context.options.at("machine").front();
  const auto* machine = reinterpret_cast<const std::shared_ptr<FakeMachine>*>(std::stoull(address));
  return std::unique_ptr<Collector>(std::make_unique<FakeCollector>(*machine));
}

/// `machine` must stay at its address while the collector lives.
inline CollectorContext fake_context(const std::shared_ptr<FakeMachine>& machine, const Clock& clock) {
  const std::string address = std::to_string(reinterpret_cast<std::uintptr_t>(&machine));
  return {"/sys", "/proc", &clock, {{"machine", {address}}}};
}

inline std::span<const RowDoc> no_rows() { return {}; }
inline std::optional<OptionProblem> all_right(const CollectorContext&) { return std::nullopt; }
inline constexpr CollectorEntry kFake = {"fake", true, 0, {}, no_rows, all_right, open_fake};
inline constexpr CollectorEntry kFakeOneAtATime = {"fake", true, 1, {}, no_rows, all_right, open_fake};

}  // namespace gpumeter
