#include "collectors/nccl/watch.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/ras_job.hpp"
#include "tests/fakes/ras_server.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter::nccl {
namespace {

using std::chrono::seconds;

/// A machine with processes of user 1000 on GPU 0, whose RAS is a server of the test.
class NcclWatch : public testing::Test {
 protected:
  static constexpr int kSocket = 501;

  void add(int pid, const std::string& library, bool listens = true) {
    const std::string folder = std::to_string(pid);
    proc_.write(folder + "/maps", "7f00-7f01 r-xp 00000000 fe:00 77      /usr/lib/" + library + "\n");
    proc_.write(folder + "/status",
                "Name:\tpython\nNSpid:\t" + folder + "\t" + std::to_string(pid % 100) + "\n");
    proc_.write(folder + "/fd/0", "-> /dev/null");
    if (listens) proc_.write(folder + "/fd/9", "-> socket:[" + std::to_string(kSocket) + "]");
    workloads::ProcessUse use;
    use.id = {pid, 1};
    use.uid = 1000;
    use.group = "/system.slice/train.service";
    use.present = true;
    use_.processes.push_back(use);
  }
  void listen(const RasServer& server) {
    settings_.port = server.port();
    char row[160];
    std::snprintf(
        row, sizeof row,
        "   0: 0100007F:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 %d 1\n",
        static_cast<unsigned>(server.port()), kSocket);
    proc_.write("net/tcp", row);
  }
  Watch& watch() {
    if (watch_) return *watch_;
    watch_.emplace(
        Watch::Parts{
            .clock = clock_,
            .uses = [this] { return std::vector{std::make_shared<const workloads::DeviceUse>(use_)}; },
            .run_of = [this](const workloads::ProcessUse&) { return run_; },
            .user_name = [](std::uint32_t uid) { return "user" + std::to_string(uid); },
            .say =
                [this](const std::string& user, State state, const std::string& reason) {
                  said_ += user + " " + std::string(to_string(state)) + " " + reason + "\n";
                },
            .procfs = proc_.path()},
        settings_);
    return *watch_;
  }
  std::string page() {
    watch().write(series_);
    series_.commit(clock_.monotonic());
    return walked(store_);
  }
  bool has(const std::string& part) { return page().find(part) != std::string::npos; }

  static workloads::DeviceUse make_use() {
    workloads::DeviceUse use;
    use.uuid = "GPU-1";
    return use;
  }

  Tree proc_ = make_tree({{"net/tcp6", ""}});
  FakeClock clock_;
  Store store_;
  SeriesList series_{store_.attach()};
  workloads::DeviceUse use_ = make_use();
  std::optional<RunLabels> run_;
  Settings settings_;
  std::string said_;
  std::optional<Watch> watch_;
};

TEST_F(NcclWatch, AsksOnceInAnInterval) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .all_reduces = 7, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  for (int i = 0; i < 30; ++i) {
    watch().turn();
    clock_.advance(seconds(1));
  }
  EXPECT_EQ(server.connections(), 1);
  watch().turn();
  EXPECT_EQ(server.connections(), 2);
  EXPECT_EQ(said_, "user1000 asked \n");
  EXPECT_TRUE(has("gpumeter_nccl_state{user=\"user1000\",state=\"asked\"} 1"));
  EXPECT_TRUE(
      has("ml_nccl_collectives_total{run=\"train.service\",user=\"user1000\",op=\"all_reduce\"} 7\n"));
  EXPECT_TRUE(
      has("ml_nccl_last_success_timestamp_seconds{run=\"train.service\",user=\"user1000\"} 1767225630\n"));
  EXPECT_TRUE(
      has("ml_run_gpu_info{run=\"train.service\",user=\"user1000\",gpu=\"0\",uuid=\"GPU-1\",source=\"nccl\"} "
          "1\n"));
}

TEST_F(NcclWatch, NamesTheRunThatTheJobReports) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  run_ = RunLabels{"ann", "bert"};
  watch().turn();
  EXPECT_TRUE(has("ml_nccl_ranks{run=\"bert\",user=\"ann\",state=\"ok\"} 1\n"));
  EXPECT_FALSE(has("ml_run_gpu_info"));
}

TEST_F(NcclWatch, NeverConnectsIfTheGateRefuses) {
  RasServer server(RasServer::documented([] { return std::string("{}"); }));
  add(1234, "libnccl.so.2.29.3");
  add(1235, "libnccl.so.2.28.9", false);
  listen(server);
  for (int i = 0; i < 20; ++i) {
    watch().turn();
    clock_.advance(seconds(30));
  }
  EXPECT_EQ(server.connections(), 0);
  EXPECT_EQ(said_, "user1000 old_version process 1235 has NCCL 2.28.9; its RAS is safe from 2.29.2 on\n");
  EXPECT_TRUE(has("gpumeter_nccl_state{user=\"user1000\",state=\"old_version\"} 1\n"));
  EXPECT_FALSE(has("ml_nccl"));
}

TEST_F(NcclWatch, AsksOnlyTheConfiguredUsers) {
  RasServer server(RasServer::documented([] { return std::string("{}"); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  settings_.users = {"somebody", "1001"};
  watch().turn();
  EXPECT_EQ(server.connections(), 0);
  EXPECT_EQ(page(), "");
}

TEST_F(NcclWatch, NeedsAProcessOnAGpu) {
  RasServer server(RasServer::documented([] { return std::string("{}"); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  use_.processes[0].present = false;
  watch().turn();
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(NcclWatch, WaitsLongerAfterEachFailure) {
  RasServer server(RasServer::documented([] { return std::string("{\"communicators\": ["); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  std::string times;
  for (int at = 0, before = 0; at <= 600; at += 10, clock_.advance(seconds(10))) {
    watch().turn();
    if (server.connections() != before) times += std::to_string(at) + " ";
    before = server.connections();
  }
  EXPECT_EQ(times, "0 60 180 420 ");
  EXPECT_EQ(said_, "user1000 failed the answer is no complete JSON document\n");
  EXPECT_FALSE(has("ml_nccl"));
}

// A run whose NCCL fails for a moment stays; one that does not answer for three intervals leaves the page.
TEST_F(NcclWatch, ForgetsRunsThatDoNotAnswer) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .pid = 34}});
  std::atomic<bool> is_broken{false};
  RasServer server(RasServer::documented([&] { return is_broken ? std::string("{") : job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  watch().turn();
  is_broken = true;
  clock_.advance(seconds(60));
  watch().turn();
  EXPECT_TRUE(has("ml_nccl_ranks"));
  EXPECT_TRUE(has("state=\"failed\"} 1\n"));
  clock_.advance(seconds(60));
  watch().turn();
  EXPECT_FALSE(has("ml_nccl_ranks"));
}

TEST_F(NcclWatch, ForgetsJobsThatEnded) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  watch().turn();
  EXPECT_TRUE(has("ml_nccl_ranks"));
  proc_.write("net/tcp", "");
  clock_.advance(seconds(10));
  watch().turn();
  EXPECT_EQ(page(), "");
  listen(server);  // another look finds it again, but asks only after the interval
  clock_.advance(seconds(10));
  watch().turn();
  EXPECT_EQ(server.connections(), 1);
}

// Rank 0 is on another machine, which asks more often.
TEST_F(NcclWatch, AsksSeldomIfAnotherMachineLeads) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .host = "192.0.2.7"}, {.rank = 1, .pid = 34}});
  RasServer server(RasServer::documented([&] { return job.text(); }));
  add(1234, "libnccl.so.2.29.3");
  listen(server);
  for (int at = 0; at < 300; at += 10, clock_.advance(seconds(10))) watch().turn();
  EXPECT_EQ(server.connections(), 1);
  watch().turn();
  EXPECT_EQ(server.connections(), 2);
  // Between two answers nothing is known, so the time stands still.
  EXPECT_TRUE(has("ml_nccl_stalled_seconds{run=\"train.service\",user=\"user1000\"} 300\n"));
  clock_.advance(seconds(200));
  watch().turn();
  EXPECT_TRUE(has("ml_nccl_stalled_seconds{run=\"train.service\",user=\"user1000\"} 300\n"));
}

}  // namespace
}  // namespace gpumeter::nccl
