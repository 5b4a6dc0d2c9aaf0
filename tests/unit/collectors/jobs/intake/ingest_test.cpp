#include "collectors/jobs/intake/ingest.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <thread>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/join/jobs_page.hpp"
#include "exporter/text/view.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {
namespace {

/// The thread itself, over real sockets and the machine's clocks.
class IngestTest : public testing::Test {
 protected:
  void start() {
    config_.jobs.socket = tree_ / "d";
    config_.jobs.stream_socket = tree_ / "s";
    ingest_ = std::make_unique<Ingest>(clock_, config_, names_, [this](const Notice& notice) {
      const MutexLock lock(mutex_);
      said_ += notice.error;
    });
    ASSERT_TRUE(ingest_->prepare(open_sockets(config_.jobs, {}, [](const Notice&) {})));
    ASSERT_TRUE(ingest_->start());
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
  /// The value of the only series of this family and run; -1 where there is none.
  double value(std::string_view family, std::string_view run) const {
    const auto snapshot = ingest_->snapshot();
    for (const JobSeries& line : snapshot->series) {
      if (line.series.family->name == family && line.series.labels.at(0).value == run) return line.value;
    }
    return -1;
  }
  std::uint64_t dropped(Refusal refusal) const {
    return ingest_->snapshot()->dropped[static_cast<std::size_t>(refusal)];
  }
  /// Until it is so, or the test times out.
  template <class True>
  static void wait_until(True is_true) {
    while (!is_true()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  const SystemClock clock_;
  Tree tree_{{}};
  config::Config config_;
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
  const auto snapshot = ingest_->snapshot();
  ASSERT_EQ(snapshot->processes.size(), 2U);
  EXPECT_EQ(snapshot->processes[0].id.pid, getpid());
  EXPECT_NE(snapshot->processes[0].id.start_time, 0U);
  EXPECT_EQ(snapshot->processes[0].run.user, "alice");
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
  IngestSettings settings = ingest_settings(config_);
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
  const std::string_view log =
      R"(:::MLLOG {"key": "run_start", "value": null, "time_ms": 1600000000000, "metadata": {}})"
      "\n";
  tree_.write("log", log);
  tree_.write("link", "-> log");
  config_.jobs.mllog = {"bert=" + (tree_ / "log"), "other=" + (tree_ / "link")};
  start();
  wait_until([&] { return value("ml_run_start_timestamp_seconds", "bert") == 1.6e9; });
  EXPECT_EQ(ingest_->snapshot()->processes.at(0).id.pid, -1);
  tree_.remove("log");
  wait_until([&] { return ingest_->snapshot()->processes.empty(); });
  const MutexLock lock(mutex_);
  EXPECT_EQ(said_, "a link is on its path; name the file itself");
}

TEST(JobsPage, HasEveryReasonAndLinesAsTheyAre) {
  JobSnapshot snapshot;
  snapshot.series.push_back(
      {{&catalog::ml_step_duration, {{"run", "a\"b"}, {"user", "u"}, {"le", "+Inf"}}}, Part::bucket, 2});
  snapshot.dropped[static_cast<std::size_t>(Refusal::malformed)] = 7;
  snapshot.processes.push_back({{1, 2, 3}, {"u", "a"}});
  Store store;
  const SystemClock clock;
  JobsPage page(
      store, clock, [&] { return std::make_shared<const JobSnapshot>(snapshot); },
      [](const JobSnapshot& joined, SeriesList& to) {
        to.add(catalog::ml_run_gpu_info, {}, static_cast<double>(joined.processes.size()));
      });
  page.publish();
  const std::string text = TextView(store).render(Format::text).text;
  const auto has = [&](std::string_view line) { return text.find(line) != std::string::npos; };
  EXPECT_TRUE(has("\nml_step_duration_seconds_bucket{run=\"a\\\"b\",user=\"u\",le=\"+Inf\"} 2\n")) << text;
  EXPECT_TRUE(has("\ngpumeter_jobs_dropped_total{reason=\"malformed\"} 7\n")) << text;
  EXPECT_TRUE(has("\ngpumeter_jobs_dropped_total{reason=\"client\"} 0\n")) << text;
  EXPECT_TRUE(has("\nml_run_gpu_info 1\n")) << text;
}

}  // namespace
}  // namespace gpumeter::jobs
