#include "daemon/parts/host.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

std::atomic<int> counted;       // turns of all counting parts
std::shared_future<void> gate;  // in which the hanging part waits
constexpr const char* kLine = "gpu_health{state=\"ok\"} ";

/// Exports its number of turns, and keeps it.
class Counting final : public Part, public Keeps {
 public:
  explicit Counting(const PartContext& context) : series_(context.store.attach({}, context.name)) {}

  Nanoseconds turn(Nanoseconds now) override {
    series_.add(catalog::health, Labels({{"state", "ok"}}), ++turns_);
    series_.commit(now);
    ++counted;
    if (gate.valid()) gate.wait();
    return Scheduler::kForever;
  }
  std::string save() const override { return std::to_string(turns_); }
  Result<Done> resume(std::string_view section, bool) override {
    if (section.empty()) return Error("empty");
    turns_ = section[0] - '0';
    return Done{};
  }

 private:
  SeriesList series_;
  int turns_ = 0;
};

class PartHostTest : public testing::Test {
 protected:
  PartHostTest() {
    counted = 0;
    gate = {};
  }
  void start(const PartEntry& entry) {
    const PartEntry* const entries[] = {&entry};
    host_.open(entries, std::make_shared<const config::Config>());
    ASSERT_TRUE(scheduler_.start());
  }
  void until(const std::function<bool()>& so) {
    while (!so()) {
      scheduler_.check();
      std::this_thread::sleep_for(1ms);
    }
  }
  void TearDown() override { EXPECT_TRUE(scheduler_.stop(clock_.monotonic() + 10s)); }

  const SystemClock clock_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
  const Paths paths_;
  Store store_;
  Machine machine_;
  Scheduler scheduler_{clock_};
  PartHost host_{{store_, machine_, clock_, log_, paths_}, scheduler_};
};

struct Settings {
  unsigned first = 0;
  bool operator==(const Settings&) const = default;
};
constexpr options::Option kOptions[] = {
    options::option<&Settings::first>("first", options::Reload::applies, "The first.")};
constinit const options::Section kSection = options::section("counting", kOptions);

constexpr PartEntry kCounting = {.name = "counting", .section = "counts", .open = open_part<Counting>};

TEST_F(PartHostTest, APartGoesOnFromItsSection) {
  host_.resume({{"counts", "4"}, {"others", "7"}}, true);
  start(kCounting);
  until([] { return counted == 1; });
  until([this] { return host_.sections() == std::map<std::string, std::string>{{"counts", "5"}}; });
  EXPECT_EQ(walked(store_), std::string(kLine) + "5\n");
}

TEST_F(PartHostTest, ASectionThatIsNotUnderstoodIsReported) {
  testing::internal::CaptureStderr();
  host_.resume({{"counts", ""}}, true);
  start(kCounting);
  ASSERT_TRUE(log_.flush(10s));
  EXPECT_NE(
      testing::internal::GetCapturedStderr().find(
          "figures of an earlier process are not understood; they start again\" part=counting error=empty"),
      std::string::npos);
  until([] { return counted == 1; });
}

TEST_F(PartHostTest, APartThatReadsTheStoreWaitsForTheDevices) {
  constexpr PartEntry kReader = {.name = "reader", .reads_store = true, .open = open_part<Counting>};
  start(kReader);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(counted, 0);
  host_.begin();
  until([] { return counted == 1; });
}

TEST_F(PartHostTest, AReloadOpensAPartAgainWhoseKeysChangedAndItsCountersGoOn) {
  constexpr PartEntry kWithKeys = {
      .name = "counting", .options = &kSection, .section = "counts", .open = open_part<Counting>};
  const PartEntry* const entries[] = {&kWithKeys};
  host_.open(entries, std::make_shared<const config::Config>());
  ASSERT_TRUE(scheduler_.start());
  until([this] { return walked(store_) == std::string(kLine) + "1\n"; });
  host_.reload(std::make_shared<const config::Config>(), clock_.monotonic() + 10s);
  EXPECT_EQ(counted, 1) << "nothing changed";
  config::Config changed;
  changed.edit<Settings>().first = 1;
  host_.reload(std::make_shared<const config::Config>(std::move(changed)), clock_.monotonic() + 10s);
  until([this] { return walked(store_) == std::string(kLine) + "2\n"; });
}

TEST_F(PartHostTest, ALatePartLosesItsSeriesAndComesBack) {
  std::promise<void> may_end;
  gate = may_end.get_future().share();
  constexpr PartEntry kHanging = {.name = "hanging", .deadline = 1ms, .open = open_part<Counting>};
  SeriesList others(store_.attach());
  others.add(catalog::up, {}, 1);
  others.commit(clock_.monotonic());
  start(kHanging);
  until([this] { return host_.states() == std::vector<PartHost::State>{{"hanging", false}}; });
  EXPECT_EQ(walked(store_), "gpu_up{} 1\n");
  may_end.set_value();
  until([this] { return host_.states() == std::vector<PartHost::State>{{"hanging", true}}; });
}

TEST_F(PartHostTest, APartThatTheConfigurationDisablesIsNotOpened) {
  constexpr PartEntry kDisabled = {.name = "disabled",
                                   .open = [](const PartContext&) { return std::shared_ptr<Part>(); }};
  start(kDisabled);
  EXPECT_TRUE(host_.states().empty());
}

}  // namespace
}  // namespace gpumeter
