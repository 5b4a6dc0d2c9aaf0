#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "collectors/nvidia/collector.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

// All threads at once, in real time: lanes, discovery, the event thread, losses, and a driver that is
// unloaded and loaded again. A bug appears as a broken NVML rule that the fake recorded, as an open handle,
// or as a sanitizer's report.

namespace gpumeter::nvidia {
namespace {

using namespace std::chrono_literals;

constexpr auto kLasts = 3s;

// GPU 1 is lost every half second, GPU 2 requires a reset once, and the driver is unloaded twice. Freeing
// needs no driver.
constexpr auto kTurmoil = R"(
errors:
  all: {steps: [[0, ok], [0.6, {error: uninitialized}], [0.7, {error: driver_not_loaded}], [0.9, ok],
                [1.4, {error: unknown}], [1.45, {error: driver_not_loaded}], [1.6, ok]]}
  nvmlGpmSampleFree: ok
  nvmlEventSetFree: ok
latency: {nvmlDeviceGetPowerUsage: 0.2}
templates:
  gpu:
    power: {draw: 100 W, energy: {rate: 100000}}
    temperature: {gpu: 50}
    utilization: {gpu: 50, memory: 5}
    samples: {gpu: {period_ms: 20, capacity: 100, value: 50}}
    gpm: {supported: yes, metrics: {2: 50, 5: 20}}
    supported_events: [xid, poison_fatal]
    fields: {82: 60, 94: 3, 185: 100000}
    mig: {mode: disabled, mode_pending: disabled, most: 7, instances: []}
storms: [{from: 0, until: 100, rate: 2000, device: 0, type: xid, data: 31},
         {from: 0, until: 100, rate: 500, device: 3, type: poison_fatal}]
devices:
  - {like: gpu, uuid: GPU-0}
  - {like: gpu, uuid: GPU-1, lost: {from: 0.2, until: 0.3, every: 0.5, times: 4}}
  - {like: gpu, uuid: GPU-2, reset_required: {from: 1.0, until: 1.1}}
  - {like: gpu, uuid: GPU-3, hang: {function: nvmlDeviceGetPowerUsage, after: 1.2, for: 0.5}}
)";

/// Acts as a lane, without its waiting. Returns true if the lane read the GPU at least once after a return.
class Lane {
 public:
  Lane(Collector& collector, const std::string& uuid)
      : info_(gpu_of(uuid)), device_(collector.device(info_)) {}

  void run(const std::atomic<bool>& stop, bool is_released_at_times) {
    for (int turn = 1; !stop; ++turn) {
      if (is_released_at_times && turn % 50 == 0) let_go();
      if (!is_attached_) attach();
      if (is_attached_) pass(turn);
      std::this_thread::sleep_for(1ms);
    }
    let_go();
  }

  int attached() const { return attached_; }
  int passes() const { return passes_; }

 private:
  void attach() {
    is_attached_ = bool(device_->attach(info_));
    attached_ += is_attached_ ? 1 : 0;
    values_.assign(device_->series().size(), 0);
    statuses_.assign(device_->series().size(), ReadStatus::unsupported);
  }
  void let_go() {
    device_->release();
    is_attached_ = false;
  }
  void pass(int turn) {
    SampleSink sink(values_, statuses_);
    now_ += 1s;
    const Tier tier = turn % 20 == 0 ? Tier::slow : turn % 5 == 0 ? Tier::normal : Tier::fast;
    const PassOutcome outcome = device_->sample({tier, now_, 1s}, sink);
    is_attached_ = outcome != PassOutcome::gone;
    passes_ += outcome == PassOutcome::complete ? 1 : 0;
  }

  DeviceInfo info_;
  std::unique_ptr<Device> device_;
  std::vector<double> values_;
  std::vector<ReadStatus> statuses_;
  Nanoseconds now_{0};
  bool is_attached_ = false;
  int attached_ = 0, passes_ = 0;
};

TEST(NvidiaRaces, LeaveNothingOpenAndBreakNoRule) {
  const FakeDriver driver(kTurmoil);
  const FakeClock clock;
  auto collector = *open_nvidia({"/nonexistent", "/proc", &clock, {{"library", {driver.library()}}}});
  std::atomic<bool> stop{false};
  std::atomic<int> found{0};
  std::atomic<std::size_t> reported{0};
  std::vector<Lane> lanes;
  for (const char* uuid : {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}) lanes.emplace_back(*collector, uuid);

  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < lanes.size(); ++i) threads.emplace_back([&, i] { lanes[i].run(stop, i == 2); });
  threads.emplace_back([&] {
    for (; !stop; std::this_thread::sleep_for(5ms)) found += collector->discover() ? 1 : 0;
  });
  threads.emplace_back([&] {
    auto& events = dynamic_cast<WatchesEvents&>(*collector);
    while (!stop) reported += events.wait_for_events(10ms).size();
  });
  std::this_thread::sleep_for(kLasts);
  stop = true;
  for (std::thread& thread : threads) thread.join();

  for (const Lane& lane : lanes) {
    EXPECT_GE(lane.attached(), 2);  // at the start, and after the driver's return
    EXPECT_GE(lane.passes(), 2);
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(reported, 0U);
  lanes.clear();
  collector.reset();
  EXPECT_EQ(driver.violations(), "");
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
}

}  // namespace
}  // namespace gpumeter::nvidia
