#include "collectors/nvidia/dcgm.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/nvidia_gpu.hpp"
#include "tests/fakes/nvml/without_symbols.hpp"
#include "tests/fakes/places.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::nvidia {
namespace {

class DcgmTest : public testing::Test {
 protected:
  DcgmTest() { ::setenv("FAKE_DCGM", (tree_ / "engine").c_str(), 1); }
  ~DcgmTest() override { ::unsetenv("FAKE_DCGM"); }

  /// What the engine has and does: tests/fakes/dcgm.
  void tell(const std::string& words) { tree_.write("engine", "GPU-other GPU-a100 " + words); }
  std::string log() const {
    std::ifstream in(tree_ / "engine.log");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// One turn a second; returns the pause until the next.
  Nanoseconds turn(int times = 1) {
    Nanoseconds pause{};
    for (int i = 0; i < times; ++i) pause = client_.turn(now_ += std::chrono::seconds(1));
    return pause;
  }
  /// The fields that have a value, as "1002 0.02".
  std::string values(const DcgmGpu& gpu) const {
    std::string text;
    for (std::size_t i = 0; i < dcgm::kFields.size(); ++i) {
      const Sample sample = gpu.read(i, now_);
      if (sample.status == ReadStatus::ok) {
        text += (text.empty() ? "" : ", ") + std::to_string(dcgm::kFields[i]) + " " +
                std::to_string(sample.value).substr(0, 4);
      } else {
        EXPECT_EQ(sample.status, ReadStatus::unsupported);
      }
    }
    return text;
  }
  static constexpr const char* kAll =
      "1001 0.01, 1002 0.02, 1003 0.03, 1004 0.04, 1005 0.05, 1006 0.06, 1007 0.07, 1008 0.08, 1013 0.13, "
      "1014 0.14, 1015 0.15";

  const Tree tree_{{}};
  Nanoseconds now_ = std::chrono::seconds(100);
  DcgmClient client_{"127.0.0.1", {"libnosuch.so.4", places::kFakeDcgm}};
};

TEST_F(DcgmTest, ReadsTheGpuOfThatUuidFromTheSecondValueOn) {
  tell("");
  const auto gpu = client_.gpu("GPU-a100");
  turn();
  EXPECT_EQ(values(*gpu), "");  // may be older than the watch
  turn();
  EXPECT_EQ(values(*gpu), kAll);
  EXPECT_EQ(client_.trouble(), "");
  EXPECT_EQ(log(), "connect 127.0.0.1\nwatch 11 fields of 4 every 1000000 us\n");
  client_.close();
}

// As DCGM's own test_dcgm_prof_pause_resume_values: begins paused.
TEST_F(DcgmTest, BlankValuesAreAbsentUntilProfilingIsResumed) {
  tell("paused");
  const auto gpu = client_.gpu("GPU-a100");
  turn(5);
  EXPECT_EQ(values(*gpu), "");
  EXPECT_EQ(client_.trouble(), "");
  turn(10);
  EXPECT_EQ(client_.trouble(),
            "DCGM has no values for GPU-a100: profiling is paused (dcgmi profile --resume ends that), or a "
            "profiler uses the counters");
  tell("");
  turn();
  EXPECT_EQ(values(*gpu), kAll);
  EXPECT_EQ(client_.trouble(), "");
  tell("paused");
  turn();
  EXPECT_EQ(values(*gpu), "");
  client_.close();
}

TEST_F(DcgmTest, AValueThatKeepsItsTimeIsAbsentAfterFiveSeconds) {
  tell("");
  const auto gpu = client_.gpu("GPU-a100");
  turn(2);
  tell("still");
  turn(5);
  EXPECT_EQ(values(*gpu), kAll);
  turn();
  EXPECT_EQ(values(*gpu), "");
  client_.close();
}

TEST_F(DcgmTest, AnEngineThatReturnsIsWatchedAgain) {
  tell("");
  const auto gpu = client_.gpu("GPU-a100");
  turn(2);
  tell("down");
  turn();
  EXPECT_EQ(client_.trouble(),
            "dcgmEntitiesGetLatestValues: Host engine connection invalid/disconnected (-21)");
  EXPECT_EQ(turn(), std::chrono::seconds(4));
  EXPECT_EQ(client_.trouble(),
            "no host engine (nv-hostengine) answers at 127.0.0.1: Host engine connection "
            "invalid/disconnected (-21)");
  EXPECT_EQ(turn(8), std::chrono::minutes(1));
  EXPECT_EQ(values(*gpu), "");
  tell("");
  EXPECT_EQ(turn(2), std::chrono::seconds(1));
  EXPECT_EQ(values(*gpu), kAll);
  EXPECT_EQ(client_.trouble(), "");
  client_.close();
}

TEST_F(DcgmTest, FieldsThatCannotBeCountedTogetherAreWatchedOneByOne) {
  tell("single lacks-1013 lacks-1006");
  const auto gpu = client_.gpu("GPU-a100");
  turn(2);
  EXPECT_EQ(
      values(*gpu),
      "1001 0.01, 1002 0.02, 1003 0.03, 1004 0.04, 1005 0.05, 1007 0.07, 1008 0.08, 1014 0.14, 1015 0.15");
  EXPECT_EQ(client_.trouble(), "");
  client_.close();
}

TEST_F(DcgmTest, ARefusedGpuDoesNotAffectOthers) {
  tell("");
  const auto gpu = client_.gpu("GPU-a100");
  const auto unknown = client_.gpu("GPU-nosuch");
  turn();
  EXPECT_EQ(client_.trouble(), "the host engine at 127.0.0.1 does not know GPU-nosuch");
  turn();
  EXPECT_EQ(values(*gpu), kAll);
  tell("none");
  const auto other = client_.gpu("GPU-other");
  turn();
  EXPECT_EQ(client_.trouble(), "DCGM does not profile GPU-other: Unsupported field (-32)");
  EXPECT_EQ(values(*gpu), kAll);
  client_.close();
}

// A profiler may use the counters as soon as nobody reads them.
TEST_F(DcgmTest, WithoutAGpuTheConnectionEnds) {
  tell("");
  auto gpu = client_.gpu("GPU-a100");
  turn();
  gpu.reset();
  turn(2);
  EXPECT_EQ(log(), "connect 127.0.0.1\nwatch 11 fields of 4 every 1000000 us\ndisconnect\n");
}

TEST_F(DcgmTest, ASocketIsAPath) {
  tell("");
  DcgmClient client("unix:/run/engine", {places::kFakeDcgm});
  const auto gpu = client.gpu("GPU-a100");
  client.turn(now_);
  EXPECT_EQ(log(), "connect /run/engine by its socket\nwatch 11 fields of 4 every 1000000 us\n");
  client.close();
}

TEST_F(DcgmTest, AMissingOrForeignLibraryIsNamed) {
  DcgmClient missing("127.0.0.1", {"libnosuch.so.4", "libnosuch.so.3"});
  const auto gpu = missing.gpu("GPU-a100");
  missing.turn(now_);
  EXPECT_EQ(missing.trouble(),
            "libnosuch.so.4: cannot open shared object file: No such file or directory; libnosuch.so.3: "
            "cannot open shared object file: No such file or directory. Install the library of NVIDIA's "
            "DCGM, or set the key to off");
  fake_nvml::copy_without_symbols(places::kFakeDcgm, tree_ / "libdcgm.so.2", {"dcgmEntitiesGetLatestValues"});
  DcgmClient old("127.0.0.1", {tree_ / "libdcgm.so.2"});
  const auto same = old.gpu("GPU-a100");
  old.turn(now_);
  EXPECT_EQ(old.trouble(),
            "DCGM's library has no dcgmEntitiesGetLatestValues: versions 3 and 4 are supported");
}

TEST_F(DcgmTest, AHangingLibraryHoldsOnlyItsThreadAndHasNoSecondOne) {
  tell("hang");
  FakeClock clock;
  const auto hanging = std::make_shared<HangingCalls>();
  {
    std::jthread time([&](const std::stop_token& over) {  // passes while the destructor waits
      for (; !over.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
        if (hanging->contains("nvidia-dcgm")) clock.advance(std::chrono::seconds(2));
      }
    });
    Dcgm dcgm("127.0.0.1", clock, hanging, {places::kFakeDcgm});
    const auto gpu = dcgm.gpu("GPU-a100");
    while (log().find("hangs") == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    clock.advance(std::chrono::seconds(11));
    EXPECT_EQ(dcgm.trouble(), "DCGM's library does not answer");
    EXPECT_EQ(values(*gpu), "");
  }
  {
    Dcgm after("127.0.0.1", clock, hanging, {places::kFakeDcgm});
    const auto gpu = after.gpu("GPU-a100");
    EXPECT_EQ(after.trouble(), "a call of DCGM's library that hung before the reload has not returned");
  }
  tell("");
  while (hanging->contains("nvidia-dcgm")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(DcgmTest, AGpuWithPerformanceMetricsOfNvmlIsNotWatched) {
  tell("");
  FakeDriver driver("include: fixtures/h100_8.yaml");
  driver.set_time(0);
  const auto dcgm =
      std::make_shared<Dcgm>("127.0.0.1", kRealClock, nullptr, std::vector<std::string>{places::kFakeDcgm});
  NvidiaContext context({driver.library(), false, "/proc", nullptr, dcgm});
  ASSERT_TRUE(context.open(gpu_of("GPU-a1000000-0000-4000-8000-000000000000")));
  EXPECT_EQ(context.dcgm(), nullptr);
}

}  // namespace
}  // namespace gpumeter::nvidia
