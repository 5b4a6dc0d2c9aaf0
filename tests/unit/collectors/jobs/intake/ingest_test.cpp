#include "collectors/jobs/intake/ingest.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <thread>

#include "exporter/health/report.hpp"
#include "tests/fakes/requirements.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {
namespace {

/// The real thread, with real sockets and the machine's clocks.
class IngestTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = no_socket_timestamps(); !reason.empty()) GTEST_SKIP() << reason;
  }
  void start() {
    settings_.sockets = {tree_ / "d", tree_ / "s"};
    const Say say = [this](const Notice& notice) {
      const MutexLock lock(mutex_);
      said_ += notice.error;
    };
    ingest_ = std::make_unique<Ingest>(Ingest::Parts{clock_, store_, names_, say, machine_}, settings_);
    ingest_->start({});
  }
  Descriptor connected(const std::string& name, int type) const {
    Descriptor job(socket(AF_UNIX, type, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (tree_ / name).copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(job.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return job;
  }
  static void send_text(const Descriptor& job, std::string_view text) {
    EXPECT_EQ(send(job.number(), text.data(), text.size(), 0), std::ssize(text));
  }
  /// The value of the only series of this family whose first label has this value; -1 if there is none.
  double value(std::string_view family, std::string_view label) const {
    double value = -1;
    store_.walk([&](const Family& each) {
      if (each.descriptor().name != family) return;
      each.for_each([&](const Series& series) {
        if (series.labels().pairs().at(0).second == label) value = series.value();
      });
    });
    return value;
  }
  double dropped(Refusal refusal) const { return value("gpumeter_jobs_dropped_total", to_string(refusal)); }
  /// Waits until the condition holds, or the test times out.
  template <class True>
  static void wait_until(True is_true) {
    while (!is_true()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  const SystemClock clock_;
  Tree tree_{{}};
  Settings settings_;
  Store store_;
  Machine machine_;
  UserNames names_{[](std::uint32_t) { return std::optional<std::string>("alice"); }};
  Mutex mutex_;
  std::string said_ GPUMETER_GUARDED_BY(mutex_);
  std::unique_ptr<Ingest> ingest_;
};

TEST_F(IngestTest, TakesDatagramsAndConnections) {
  start();
  send_text(connected("d", SOCK_DGRAM), "ml.steps:3|c|#run:a\n");
  const Descriptor stream = connected("s", SOCK_STREAM);
  send_text(stream, "ml.steps:4|c|#run:b\n");
  wait_until([&] { return value("ml_steps_total", "a") == 3 && value("ml_steps_total", "b") == 4; });
}

TEST_F(IngestTest, CountsWhatWasTooLong) {
  start();
  const Descriptor job = connected("d", SOCK_DGRAM);
  constexpr int kLargest = 1 << 18;
  setsockopt(job.number(), SOL_SOCKET, SO_SNDBUF, &kLargest, sizeof kLargest);
  send_text(job, std::string(70'000, 'x'));
  send_text(connected("s", SOCK_STREAM), std::string("\0\0\xff\0", 4));
  wait_until([&] { return dropped(Refusal::too_long) == 2; });
}

TEST_F(IngestTest, TakesOnOtherUsersAndLimits) {
  start();
  const Descriptor job = connected("d", SOCK_DGRAM);
  LiveSettings settings;
  settings.users = {"bob"};
  ingest_->configure(settings);
  wait_until([&] {
    send_text(job, "ml.steps:1|c|#run:a\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return dropped(Refusal::user) > 0;
  });
  settings.users = {"alice"};
  settings.limits.series_per_user = 9;
  ingest_->configure(settings);
  const std::string two_runs = "ml.steps:1|c|#run:b\nml.steps:1|c|#run:c\n";
  wait_until([&] {
    send_text(job, two_runs);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return value("ml_steps_total", "_other") > 0;
  });
}

TEST_F(IngestTest, FollowsLogsOfMlperf) {
  if (const auto reason = no_root_folder(tree_.path()); !reason.empty()) GTEST_SKIP() << reason;
  const std::string_view log =
      R"(:::MLLOG {"key": "run_start", "value": null, "time_ms": 1600000000000, "metadata": {}})"
      "\n";
  tree_.write("log", log);
  tree_.write("link", "-> log");
  settings_.logs = {{"bert", tree_ / "log"}, {"other", tree_ / "link"}};
  start();
  wait_until([&] { return value("ml_run_start_timestamp_seconds", "bert") == 1.6e9; });
  wait_until([&] {
    const MutexLock lock(mutex_);
    return said_.ends_with("its path contains a link; name the file itself");
  });
}

TEST_F(IngestTest, ShowsEveryReasonFromTheStart) {
  start();
  wait_until([&] { return dropped(Refusal::client) == 0; });
  for (const auto& [refusal, name] : kRefusalNames) EXPECT_EQ(dropped(refusal), 0) << name;
}

}  // namespace
}  // namespace gpumeter::jobs
