#include "programs/nccl/part.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "programs/nccl/settings.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/ras_job.hpp"
#include "tests/fakes/ras_server.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter::nccl {
namespace {

using std::chrono::seconds;

/// A machine with processes of one user on GPU 0, whose RAS is a server of the test.
class NcclQueries : public testing::Test {
 protected:
  static constexpr int kSocket = 501;

  static constexpr std::uint32_t kUser = 4'000'000'001;  // without a name

  NcclQueries() {
    settings_.enabled = true;
    use_.uuid = "GPU-1";
  }

  void add(int pid, const std::string& library, bool listens = true) {
    const std::string folder = std::to_string(pid);
    proc_.write(folder + "/maps", "7f00-7f01 r-xp 00000000 fe:00 77      /usr/lib/" + library + "\n");
    proc_.write(folder + "/status",
                "Name:\tpython\nNSpid:\t" + folder + "\t" + std::to_string(pid % 100) + "\n");
    proc_.write(folder + "/fd/0", "-> /dev/null");
    if (listens) proc_.write(folder + "/fd/9", "-> socket:[" + std::to_string(kSocket) + "]");
    workloads::ProcessUse use;
    use.id = {pid, 1};
    use.uid = kUser;
    use.group = "/system.slice/train.service";
    use.present = true;
    use_.processes.push_back(use);
  }
  void listen(const RasServer& server) {
    settings_.port = server.port();
    char row[160];
    std::snprintf(
        row, sizeof row,
        "   0: 0100007F:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000  %u        0 %d 1\n",
        static_cast<unsigned>(server.port()), static_cast<unsigned>(kUser), kSocket);
    proc_.write("net/tcp", row);
  }
  void turn() {
    machine_.uses.publish({std::make_shared<const workloads::DeviceUse>(use_)});
    machine_.runs.publish(runs_);
    if (!part_) part_ = kPart.open({"nccl", store_, machine_, clock_, log_, paths_, {}, &settings_});
    part_->turn(clock_.monotonic());
  }
  std::string page() { return walked(store_); }
  bool has(const std::string& part) { return page().find(part) != std::string::npos; }

  Tree proc_ = make_tree({{"net/tcp6", ""}});
  FakeClock clock_;
  Store store_;
  Machine machine_;
  Log log_{clock_, {}};
  const Paths paths_{.procfs = proc_.path()};
  workloads::DeviceUse use_;
  jobs::RunList runs_;
  Settings settings_;
  std::shared_ptr<Part> part_;
};

TEST_F(NcclQueries, AsksOnceInAnInterval) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .all_reduces = 7, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  for (int i = 0; i < 30; ++i) {
    turn();
    clock_.advance(seconds(1));
  }
  EXPECT_EQ(server.connections(), 1);
  turn();
  EXPECT_EQ(server.connections(), 2);
  EXPECT_TRUE(has("gpumeter_nccl_state{user=\"4000000001\",state=\"asked\"} 1"));
  EXPECT_TRUE(
      has("ml_nccl_collectives_total{run=\"train.service\",user=\"4000000001\",op=\"all_reduce\"} 7\n"));
  EXPECT_TRUE(
      has("ml_nccl_last_success_timestamp_seconds{run=\"train.service\",user=\"4000000001\"} 1767225630\n"));
  EXPECT_TRUE(has(
      "ml_run_gpu_info{run=\"train.service\",user=\"4000000001\",gpu=\"0\",uuid=\"GPU-1\",source=\"nccl\"} "
      "1\n"));
}

TEST_F(NcclQueries, NamesTheRunThatTheJobReports) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  runs_.on_devices[{1234, 1}] = {"ann", "bert"};
  turn();
  EXPECT_TRUE(has("ml_nccl_ranks{run=\"bert\",user=\"ann\",state=\"ok\"} 1\n"));
  EXPECT_FALSE(has("ml_run_gpu_info"));
}

TEST_F(NcclQueries, NeverConnectsIfTheGateRefuses) {
  RasServer server(RasServer::documented([] { return std::string("{}"); }));
  add(1234, "libnccl.so.2.29.3");
  add(1235, "libnccl.so.2.28.9", false);
  listen(server);
  for (int i = 0; i < 20; ++i) {
    turn();
    clock_.advance(seconds(30));
  }
  EXPECT_EQ(server.connections(), 0);
  EXPECT_TRUE(has("gpumeter_nccl_state{user=\"4000000001\",state=\"old_version\"} 1\n"));
  EXPECT_FALSE(has("ml_nccl"));
}

TEST_F(NcclQueries, AsksOnlyTheConfiguredUsers) {
  RasServer server(RasServer::documented([] { return std::string("{}"); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  settings_.users = {"somebody", "1001"};
  turn();
  EXPECT_EQ(server.connections(), 0);
  EXPECT_EQ(page(), "");
}

TEST_F(NcclQueries, NeedsAProcessOnAGpu) {
  RasServer server(RasServer::documented([] { return std::string("{}"); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  use_.processes[0].present = false;
  turn();
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(NcclQueries, WaitsLongerAfterEachFailure) {
  RasServer server(RasServer::documented([] { return std::string("{\"communicators\": ["); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  std::string times;
  for (int at = 0, before = 0; at <= 600; at += 10, clock_.advance(seconds(10))) {
    turn();
    if (server.connections() != before) times += std::to_string(at) + " ";
    before = server.connections();
  }
  EXPECT_EQ(times, "0 60 180 420 ");
  EXPECT_FALSE(has("ml_nccl"));
}

// A run whose NCCL fails for a moment stays; one that does not answer for three intervals leaves the page.
TEST_F(NcclQueries, ForgetsRunsThatDoNotAnswer) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .pid = 34}});
  std::atomic<bool> is_broken{false};
  RasServer server(RasServer::documented([&] { return is_broken ? std::string("{") : job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  turn();
  is_broken = true;
  clock_.advance(seconds(60));
  turn();
  EXPECT_TRUE(has("ml_nccl_ranks"));
  EXPECT_TRUE(has("state=\"failed\"} 1\n"));
  clock_.advance(seconds(60));
  turn();
  EXPECT_FALSE(has("ml_nccl_ranks"));
}

TEST_F(NcclQueries, ForgetsJobsThatEnded) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  turn();
  EXPECT_TRUE(has("ml_nccl_ranks"));
  proc_.write("net/tcp", "");
  clock_.advance(seconds(10));
  turn();
  EXPECT_EQ(page(), "");
  listen(server);  // another look finds it again, but asks only after the interval
  clock_.advance(seconds(10));
  turn();
  EXPECT_EQ(server.connections(), 1);
}

// Rank 0 is on another machine, which asks more often.
TEST_F(NcclQueries, AsksSeldomIfAnotherMachineLeads) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .host = "192.0.2.7"}, {.rank = 1, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  for (int at = 0; at < 300; at += 10, clock_.advance(seconds(10))) turn();
  EXPECT_EQ(server.connections(), 1);
  turn();
  EXPECT_EQ(server.connections(), 2);
  // Between two answers nothing is known, so the time stands still.
  EXPECT_TRUE(has("ml_nccl_stalled_seconds{run=\"train.service\",user=\"4000000001\"} 300\n"));
  clock_.advance(seconds(200));
  turn();
  EXPECT_TRUE(has("ml_nccl_stalled_seconds{run=\"train.service\",user=\"4000000001\"} 300\n"));
}

}  // namespace
}  // namespace gpumeter::nccl
