#include "collectors/simulated/context.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_procfs.hpp"

namespace gpumeter::simulated {
namespace {

using namespace std::chrono_literals;

class ProcessesTest : public testing::Test {
 protected:
  using List = std::vector<DeviceProcess>;

  Processes on(int device, const std::vector<std::string>& options) {
    Settings settings;
    settings.workload = {10s, 0.5, 90, 420};
    for (const std::string& option : options) settings.processes.push_back(*parse_process_option(option, 2));
    simulation_ = std::make_shared<const Simulation>(settings, clock_, procfs_.path());
    return {simulation_, static_cast<std::size_t>(device)};
  }
  /// Returns the list after this much more time.
  List list(Processes& processes, Nanoseconds later) {
    clock_.advance(later);
    List out;
    processes.list(clock_.monotonic(), out);
    return out;
  }

  FakeClock clock_;
  FakeProcfs procfs_;
  Tree files_ = make_tree({});
  std::shared_ptr<const Simulation> simulation_;
};

TEST_F(ProcessesTest, AreThoseOfTheDeviceThatLive) {
  for (const int pid : {7, 8, 9}) procfs_.add(pid, "/a");
  procfs_.add(10, "/a", {.name = ") S ", .state = 'Z'});
  const std::vector<std::string> options = {
      "0=7,busy=0.25,memory=1KiB", "1=8,busy=0", "*=9,busy=1", "0=10,busy=1", "0=4711,busy=1", "*=7,busy=1"};
  Processes first = on(0, options);
  EXPECT_EQ(list(first, 2s), (List{{7, 1024, 0.5}, {9, std::nullopt, 2}}));
  EXPECT_EQ(list(first, 1s), (List{{7, 1024, 0.25}, {9, std::nullopt, 1}}));
  Processes second = on(1, options);
  EXPECT_EQ(list(second, 2s), (List{{8, std::nullopt, 0}, {9, std::nullopt, 2}, {7, std::nullopt, 2}}));
}

TEST_F(ProcessesTest, AreReadAnewFromTheirFile) {
  for (const int pid : {7, 8}) procfs_.add(pid, "/a");
  Processes processes = on(0, {"0=" + files_ / "pids" + ",busy=0.5"});
  EXPECT_EQ(list(processes, 1s), List{}) << "there is no such file";
  files_.write("pids", "7\n\n 8 \nx\n9x\n-1\n4711");
  EXPECT_EQ(list(processes, 1s), (List{{7, std::nullopt, 0.5}, {8, std::nullopt, 0.5}}));
  procfs_.end(7);
  EXPECT_EQ(list(processes, 1s), (List{{8, std::nullopt, 0.5}}));
  files_.write("pids", "");
  EXPECT_EQ(list(processes, 1s), List{});
  files_.write("pids", std::string(9000, '7'));
  EXPECT_EQ(list(processes, 1s), List{});
}

TEST_F(ProcessesTest, DoEqualPartsOfWhatTheDeviceDoes) {
  for (const int pid : {7, 8, 9}) procfs_.add(pid, "/a");
  Processes processes = on(0, {"0=7", "0=8", "0=9,busy=0.1"});
  const List listed = list(processes, 20s);  // two whole periods, half of them busy
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_NEAR(*listed[0].busy_seconds, 5, 1e-9);
  EXPECT_NEAR(*listed[1].busy_seconds, 5, 1e-9);
  EXPECT_NEAR(*listed[2].busy_seconds, 2, 1e-9);
}

}  // namespace
}  // namespace gpumeter::simulated
