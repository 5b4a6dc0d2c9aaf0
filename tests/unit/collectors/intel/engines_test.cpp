#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "collectors/intel/pmu.hpp"
#include "tests/fakes/fake_drm_users.hpp"
#include "tests/fakes/intel_card_test.hpp"

namespace gpumeter::intel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A PMU with the events of `counts`, by config.
class FakePmu final : public pmu::Opener {
 public:
  using Counts = std::map<std::uint64_t, std::uint64_t>;

  pmu::Opened open(const pmu::Event& event) override {
    last_ = event;
    if (is_denied) return ReadStatus::denied;
    if (!counts->contains(event.config)) return ReadStatus::gone;
    return std::make_unique<Entry>(counts, event.config);
  }

  const std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  bool is_denied = false;
  const pmu::Event& last() const { return last_; }

 private:
  struct Entry final : pmu::Counter {
    Entry(std::shared_ptr<Counts> all, std::uint64_t which) : counts(std::move(all)), config(which) {}
    ReadStatus read(std::uint64_t& count) noexcept override {
      const auto found = counts->find(config);
      if (found == counts->end()) return ReadStatus::gone;
      count = found->second;
      return ReadStatus::ok;
    }
    const std::shared_ptr<Counts> counts;
    const std::uint64_t config;
  };
  pmu::Event last_;
};

class Engines : public OneIntelCard {
 protected:
  explicit Engines(const std::string& driver) : OneIntelCard(driver) { environment_.pmu = pmu_; }

  void pmu_file(const std::string& name, std::string_view text) {
    tree_.write("bus/event_source/devices/" + info_.driver + "_0000_03_00.0/" + name, text);
  }
  const std::shared_ptr<FakePmu> pmu_ = std::make_shared<FakePmu>();
};

constexpr std::uint64_t kSecond = 1000000000;

class I915Engines : public Engines {
 protected:
  I915Engines() : Engines("i915") {
    pmu_file("type", "24\n");
    pmu_file("cpumask", "4-7\n");
    pmu_file("format/i915_eventid", "config:0-20\n");
    pmu_file("events/rcs0-busy", "config=0x0\n");
    pmu_file("events/rcs0-busy.unit", "ns\n");
    pmu_file("events/rcs0-wait", "config=0x1\n");
    pmu_file("events/vcs0-busy", "config=0x2000\n");
    pmu_file("events/vcs1-busy", "config=0x2010\n");
    pmu_file("events/actual-frequency", "config=0x100000\n");
    *pmu_->counts = {{0, 7 * kSecond}, {1, 0}, {0x2000, 0}, {0x2010, 0}, {0x100000, 0}};
  }
};

TEST_F(I915Engines, CountNanosecondsAndAClassIsTheMeanOfItsEngines) {
  attach();
  page_->pass(Tier::fast);
  EXPECT_EQ(pmu_->last().cpu, 4);
  EXPECT_EQ(pmu_->last().type, 24U);
  *pmu_->counts = {{0, 7 * kSecond + kSecond / 4}, {1, 0}, {0x2000, kSecond / 2}, {0x2010, 0}, {0x100000, 0}};
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(page_->text(),
            "gpu_busy_seconds_total 0.5\n"
            "gpu_engine_busy_seconds_total{engine=\"graphics\"} 0.25\n"
            "gpu_engine_busy_seconds_total{engine=\"video\"} 0.25\n"
            "gpu_engine_utilization_ratio{engine=\"graphics\"} 0.25\n"
            "gpu_engine_utilization_ratio{engine=\"video\"} 0.25\n"
            "gpu_utilization_max_ratio{window=\"1m\"} 0.5\n"
            "gpu_utilization_min_ratio{window=\"1m\"} 0.5\n"
            "gpu_utilization_ratio 0.5\n");
  EXPECT_EQ(page_->source_of("busy"), "hardware");
}

TEST_F(I915Engines, TimeThatIsNotObservedIsNotCounted) {
  attach();
  page_->pass(Tier::fast);
  (*pmu_->counts)[0] += kSecond / 2;
  page_->pass(Tier::fast, seconds(1));
  (*pmu_->counts)[0] += kSecond;
  page_->pass(Tier::fast);  // after a gap
  (*pmu_->counts)[0] += kSecond / 4;
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(page_->text({"gpu_engine", "gpu_util"}), "gpu_busy_seconds_total 0.75\n");
}

TEST_F(I915Engines, GraphicsInTheProcessorHaveThePmuWithoutAnAddress) {
  EXPECT_EQ(pmu::find_folder(tree_.path(), "i915", "0000:00:02.0"), "");
  tree_.write("bus/event_source/devices/i915/type", "10\n");
  EXPECT_EQ(pmu::find_folder(tree_.path(), "i915", "0000:00:02.0"), tree_ / "bus/event_source/devices/i915");
  EXPECT_EQ(pmu::find_folder(tree_.path(), "i915", "0000:04:00.0"), "");
}

class XeEngines : public Engines {
 protected:
  XeEngines() : Engines("xe") {
    pmu_file("type", "26\n");
    pmu_file("events/engine-active-ticks", "event=0x02\n");
    pmu_file("events/engine-total-ticks", "event=0x03\n");
    pmu_file("format/event", "config:0-11\n");
    pmu_file("format/engine_instance", "config:12-19\n");
    pmu_file("format/engine_class", "config:20-27\n");
    pmu_file("format/function", "config:44-59\n");
    pmu_file("format/gt", "config:60-63\n");
    write("tile0/gt0/engines/rcs/job_timeout_ms", "5000\n");
    write("tile0/gt0/engines/ccs/job_timeout_ms", "5000\n");
    write("tile0/gt1/engines/vcs/job_timeout_ms", "5000\n");
    for (const std::uint64_t engine : {kRender, kCompute, kCompute3, kVideo}) set(engine, 0, 0);
  }
  static constexpr std::uint64_t kRender = 0;
  static constexpr std::uint64_t kCompute = 4 << 20;
  static constexpr std::uint64_t kCompute3 = 4 << 20 | 3 << 12;  // engines 1 and 2 are fused off
  static constexpr std::uint64_t kVideo = 2 << 20 | std::uint64_t{1} << 60;

  void set(std::uint64_t engine, std::uint64_t active, std::uint64_t total) {
    (*pmu_->counts)[engine | 2] = active;
    (*pmu_->counts)[engine | 3] = total;
  }
};

TEST_F(XeEngines, ShareIsActiveTicksOfAllTicks) {
  attach();
  page_->pass(Tier::fast);
  set(kRender, 10, 100);
  set(kCompute, 50, 200);
  set(kCompute3, 200, 200);
  set(kVideo, 0, 0);  // a clock that stands still
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(page_->text({"gpu_engine_util", "gpu_utilization_m"}),
            "gpu_busy_seconds_total 1\n"
            "gpu_engine_busy_seconds_total{engine=\"compute\"} 0.625\n"
            "gpu_engine_busy_seconds_total{engine=\"graphics\"} 0.1\n"
            "gpu_engine_busy_seconds_total{engine=\"video\"} 0\n"
            "gpu_utilization_ratio 1\n");
}

TEST_F(XeEngines, AKernelWithoutEngineEventsHasNone) {
  tree_.remove("bus/event_source/devices/xe_0000_03_00.0/events/engine-total-ticks");
  EXPECT_EQ(sampled(), "");
}

TEST_F(XeEngines, WithoutPermissionTheClientsStandIn) {
  const auto users = std::make_shared<FakeDrmUsers>();
  environment_.roots.users = users;
  pmu_->is_denied = true;
  attach();
  page_->pass(Tier::fast);
  EXPECT_EQ(users->watches["0000:03:00.0"], 1);
  EXPECT_EQ(page_->text(), "");
  DrmUse use;
  use.scanned_at = page_->now();
  use.observed = seconds(10);
  use.busy_seconds = engine_seconds({{EngineClass::compute, 2}});
  users->scan("0000:03:00.0", use);
  page_->pass(Tier::fast, seconds(1));
  use.scanned_at = page_->now();
  use.observed = seconds(20);
  use.busy_seconds = engine_seconds({{EngineClass::compute, 7}, {EngineClass::copy, 1}});
  users->scan("0000:03:00.0", use);
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(page_->text({"gpu_utilization_m"}),
            "gpu_busy_seconds_total 5\n"
            "gpu_engine_busy_seconds_total{engine=\"compute\"} 7\n"
            "gpu_engine_busy_seconds_total{engine=\"copy\"} 1\n"
            "gpu_engine_utilization_ratio{engine=\"compute\"} 0.5\n"
            "gpu_engine_utilization_ratio{engine=\"copy\"} 0.1\n"
            "gpu_utilization_ratio 0.5\n");
  EXPECT_EQ(page_->source_of("busy"), "fdinfo");
}

TEST_F(XeEngines, AScanThatIsOldIsNoValue) {
  const auto users = std::make_shared<FakeDrmUsers>();
  environment_.roots.users = users;
  environment_.pmu = nullptr;
  attach();
  DrmUse use;
  use.busy_seconds = engine_seconds({{EngineClass::graphics, 2}});
  users->scan("0000:03:00.0", use);
  page_->pass(Tier::fast);
  EXPECT_EQ(page_->text({"gpu_busy"}), "gpu_engine_busy_seconds_total{engine=\"graphics\"} 2\n");
  for (int i = 0; i < 40; ++i) page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(page_->text(), "");
}

TEST_F(XeEngines, WhatIsDeniedNamesItsDropIn) {
  const auto denied = [&](const std::vector<DeviceInfo>& devices) {
    std::string text;
    for (const DeniedValues& each : denied_values(environment_, devices))
      text += each.what + " " + each.drop_in + "\n";
    return text;
  };
  EXPECT_EQ(denied({info_}), "");
  pmu_->is_denied = true;
  EXPECT_EQ(denied({info_, info_}), "busy_time pmu.conf\n");
  environment_.may_see_use = false;
  EXPECT_EQ(denied({info_}), "busy_time pmu.conf\nused_memory pmu.conf\n");
  EXPECT_EQ(denied({}), "");
}

TEST_F(XeEngines, WithoutEitherThereIsNoUtilisation) {
  pmu_->is_denied = true;
  EXPECT_EQ(sampled(), "");
}

}  // namespace
}  // namespace gpumeter::intel
