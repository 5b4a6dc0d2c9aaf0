#include <gtest/gtest.h>

#include <string>

#include "collectors/jobs/wire/line.hpp"
#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

using namespace std::string_view_literals;

constexpr Limits kUnhurried{.lines_per_second = 1'000'000'000};

/// The sum over one user, or over all users if none is named.
double sum_of(JobsBench& jobs, std::string_view family, std::string_view user = {}) {
  double sum = 0;
  for (const PageLine& line : jobs.lines({family})) {
    if (user.empty() || line.user() == user) sum += line.value;
  }
  return sum;
}

TEST(RunQuota, AHundredThousandRunsOfOneUserLeaveTheOthersAlone) {
  JobsBench jobs(kUnhurried);
  jobs.send(10, "ml.steps:7|c|#run:mine", 1001);
  std::string payload;
  for (int run = 0; run < 100'000; ++run) {
    payload += "ml.steps:1|c|#run:r" + std::to_string(run) + ",pid:1,uuid:GPU-0,gpu:0\n";
    if (run % 80 < 79) continue;
    jobs.send(100 + run / 80, payload);
    payload.clear();
  }
  EXPECT_EQ(sum_of(jobs, "ml_steps_total", "alice"), 1e5);  // all of it, whichever runs the values went to
  EXPECT_TRUE(jobs.page({"ml_steps_total"})
                  .starts_with("ml_steps_total{run=\"r0\",user=\"alice\",split=\"train\"} 1\nml_ste"));
  EXPECT_NE(
      jobs.page({"ml_steps_total"}).find("ml_steps_total{run=\"mine\",user=\"bob\",split=\"train\"} 7\n"),
      std::string::npos);
  // 9 series a run: 142 runs for a process, 910 for a user, and the rest in `_other`.
  const RunModel::Usage usage = jobs.model.usage();
  EXPECT_EQ(usage.runs, 910U + 1);
  EXPECT_EQ(usage.series, 910U * 9 + 1 + 9);
  EXPECT_EQ(usage.processes, 1024U + 1);
  EXPECT_EQ(jobs.dropped(), "series_limit=" + std::to_string(100'000 - 910) + ' ');
}

TEST(RunQuota, AProcessHasFewerSeriesThanItsUser) {
  JobsBench jobs(kUnhurried);
  for (int run = 0; run < 200; ++run) jobs.send(10, "ml.steps:1|c|#run:r" + std::to_string(run));
  jobs.page();
  EXPECT_EQ(jobs.model.usage().runs, 142U);  // 9 series each; 1280 / 9
  jobs.send(11, "ml.steps:1|c|#run:of_another");
  EXPECT_EQ(jobs.page({"ml_steps_total"}).find("run=\"of_another\"") == std::string::npos, false);
}

// The attack: one process begins 160 runs, ends them, and begins the next ones when they have left the page.
TEST(RunQuota, NewSeriesHaveABudgetOfTheirOwn) {
  JobsBench jobs(kUnhurried);
  std::set<std::string> seen;
  int run = 0;
  for (int time = 0; time < 18; ++time) {
    for (int i = 0; i < 160; ++i) {
      const std::string tag = "|#run:r" + std::to_string(run++);
      jobs.send(10, "ml.steps:1|c" + tag + "\n_e{8,7}:run_stop|success" + tag);
    }
    for (const PageLine& line : jobs.lines()) seen.insert(line.run());
    jobs.wait(601);
  }
  EXPECT_LE(seen.size(), 4U * 142 + 1) << "a process's series at once, and as many an hour";
  EXPECT_GE(seen.size(), 3U * 142);
  jobs.send(11, "ml.steps:1|c|#run:of_another");
  EXPECT_NE(jobs.page({"ml_steps_total"}).find("of_another"), std::string::npos);
}

// A container's root takes another uid for each message.
TEST(RunQuota, NewUsersWithoutANameHaveABudgetOfTheirOwn) {
  Limits limits = kUnhurried;
  limits.users = 10;
  limits.retention = std::chrono::seconds(1);
  JobsBench jobs(limits);
  for (std::uint32_t uid = 70'000; uid < 71'000; ++uid) {
    jobs.send_as(uid, 0, "ml.steps:1|c", uid, std::to_string(uid));
    jobs.wait(2);
    jobs.tick();
  }
  EXPECT_EQ(jobs.dropped(), "series_limit=" + std::to_string(1000 - 10 - 5) + ' ') << "10, and 10 an hour";
  jobs.send(11, "ml.steps:1|c", 1001);
  EXPECT_EQ(sum_of(jobs, "ml_steps_total", "bob"), 1);
}

// Each check of a process reads a file of /proc.
TEST(RunQuota, ALineThatFindsNoRoomAsksAboutFewProcesses) {
  JobsBench jobs(kUnhurried);
  for (int pid = 100; pid < 600; ++pid) {
    jobs.in_workload(pid, cgroup::Kind::user_unit, std::to_string(pid));
    jobs.send(pid, "_e{9,1}:run_start|a|#run:a");
  }
  jobs.in_workload(10, cgroup::Kind::user_unit, "full");
  for (int run = 0; run < 160; ++run) jobs.send(10, "_e{9,1}:run_start|r|#run:r" + std::to_string(run));
  jobs.questions = 0;
  for (int line = 0; line < 100; ++line) jobs.send(10, "ml.steps:1|c|#run:a");
  EXPECT_LE(jobs.questions, 100 * 16);
  EXPECT_EQ(jobs.dropped(), "series_limit=100 ");
}

TEST(RunQuota, ManyUsersFillTheWholeAndTheRestIsOfNobody) {
  JobsBench jobs(kUnhurried);
  for (std::uint32_t uid = 2000; uid < 3100; ++uid) {
    for (int run = 0; run < 6; ++run) jobs.send(10, "ml.steps:1|c|#run:r" + std::to_string(run), uid);
  }
  const std::string page = jobs.page({"ml_steps_total"});
  EXPECT_EQ(jobs.model.usage().users, 1024U);
  EXPECT_LE(jobs.model.usage().series, 40000U);
  EXPECT_NE(page.find("ml_steps_total{run=\"_other\",user=\"_other\",split=\"train\"}"), std::string::npos);
  EXPECT_EQ(sum_of(jobs, "ml_steps_total"), 1024 * 6);
}

/// 8 + 170 steps + 162 requests + 130 first tokens + 102 between tokens = 572.
void serve(JobsBench& jobs, const std::string& run) {
  for (const char* const name : {"step", "infer", "ttft", "itl"}) {
    jobs.send(10, "ml." + std::string(name) + ".seconds:1|d|#run:" + run);
  }
}

TEST(RunQuota, ARunHasRoomForAllHistogramsOfTrainingAndOfServing) {
  JobsBench jobs(kUnhurried);
  serve(jobs, "serve");
  for (const char* const split : {"train", "eval", "infer"}) {
    jobs.send(10, "ml.step.seconds:1|d|#run:train,split:" + std::string(split));
  }
  for (const char* const phase :
       {"data_loading", "h2d", "forward", "backward", "optimizer", "communication", "checkpoint_save",
        "checkpoint_load", "eval", "compile", "init", "idle", "other"}) {
    jobs.send(10, "ml.phase.seconds:1|d|#run:train,phase:" + std::string(phase));
  }
  for (int i = 0; i < 16; ++i) jobs.send(10, "ml.custom:1|g|#run:train,metric:m" + std::to_string(i));
  for (int i = 0; i < 8; ++i) jobs.send(10, "ml.eval:1|g|#run:train,metric:m" + std::to_string(i));
  EXPECT_EQ(jobs.dropped(), "");
}

TEST(RunQuota, WhatARunHasNoRoomForIsSummedInOther) {
  JobsBench jobs(kUnhurried);
  serve(jobs, "a");  // 108 are left
  jobs.send(10, "ml.step.seconds:1|d|#run:a,split:eval");
  for (int i = 0; i < 8; ++i) jobs.send(10, "ml.eval:1|g|#run:a,metric:m" + std::to_string(i));
  for (int i = 0; i < 16; ++i) jobs.send(10, "ml.custom:1|g|#run:a,metric:m" + std::to_string(i));
  for (const char* const phase :
       {"data_loading", "h2d", "forward", "backward", "optimizer", "communication", "checkpoint_save",
        "checkpoint_load", "eval", "compile", "init", "idle", "other"}) {
    jobs.send(10, "ml.phase.seconds:1|d|#run:a,phase:" + std::string(phase));
  }
  for (const char* const split : {"train", "eval", "infer"}) {
    for (const char* const word : {"steps", "samples", "tokens"}) {
      jobs.send(10, "ml." + std::string(word) + ":1|c|#run:a,split:" + split);
    }
    jobs.send(10, "ml.loss:1|g|#run:a,split:" + std::string(split));
    jobs.send(10, "ml.tokens:1|c|#run:a,kind:input,split:" + std::string(split));
  }
  jobs.send(10, "ml.samples:3|c|#run:a\nml.tokens:5|c|#run:a,kind:output\nml.world_size:8|g|#run:a");
  jobs.send(10, "ml.flops:5|c|#run:a");
  EXPECT_EQ(
      jobs.page({"ml_samples_total", "ml_model_flops_total", "ml_step_duration_seconds"})
              .find("ml_step_duration_seconds_count{run=\"_other\",user=\"alice\",split=\"eval\"} 1\n") !=
          std::string::npos,
      true);
  EXPECT_EQ(jobs.dropped(), "series_limit=1 ");
  EXPECT_LE(jobs.model.usage().series, 680U + 170);
}

TEST(RunQuota, MetricsOfEvaluationsAreEight) {
  JobsBench jobs;
  for (int i = 0; i < 20; ++i) jobs.send(10, "ml.eval:1|g|#run:a,metric:m" + std::to_string(i));
  EXPECT_EQ(jobs.dropped(), "series_limit=12 ");
}

TEST(RunQuota, LinesComeAtARate) {
  JobsBench jobs;
  const auto send_600 = [&](std::uint32_t uid) {
    for (int i = 0; i < 6; ++i) {
      std::string payload;
      for (int line = 0; line < 100; ++line) payload += "ml.steps:1|c|#run:a\n";
      jobs.send(10, payload, uid);
    }
  };
  for (int i = 0; i < 5; ++i) send_600(1000);
  send_600(1001);
  EXPECT_EQ(jobs.dropped(), "rate_limit=1000 ");
  jobs.wait(0.1);
  send_600(1000);
  EXPECT_EQ(jobs.dropped(), "rate_limit=1400 ");
  EXPECT_EQ(jobs.page({"ml_steps_total"}), R"(ml_steps_total{run="a",user="alice",split="train"} 2200
ml_steps_total{run="a",user="bob",split="train"} 600
)");
}

TEST(RunQuota, APackedLineIsChargedForEachOfItsValues) {
  JobsBench jobs;
  std::string packed = "ml.step.seconds";
  for (int i = 0; i < 30'000; ++i) packed += ":1";
  packed += "|d|#run:a";
  jobs.send(10, packed);  // there is room for 2000: the debt of 28 000 is paid in 14 s
  jobs.send(10, "ml.steps:1|c|#run:a");
  jobs.send(10, packed);
  EXPECT_EQ(jobs.dropped(), "rate_limit=30001 ");
  jobs.wait(13.9);
  jobs.send(10, "ml.steps:1|c|#run:a");
  jobs.wait(0.2);
  jobs.send(10, "ml.steps:1|c|#run:a");
  EXPECT_EQ(jobs.dropped(), "rate_limit=30002 ");
  EXPECT_EQ(jobs.page({"ml_steps_total"}), "ml_steps_total{run=\"a\",user=\"alice\",split=\"train\"} 1\n");
}

TEST(RunQuota, AllSubordinateUidsAreTheirOwner) {
  JobsBench jobs;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    jobs.send_as(1000, 100 + static_cast<int>(i % 1000), "ml.steps:1|c|#run:a", 100'000 + i);
  }
  jobs.send(10, "ml.steps:1|c|#run:a", 1001);
  EXPECT_EQ(jobs.dropped(), "rate_limit=1000 series_limit=976 ");  // 1024 processes of one user have room
  EXPECT_EQ(jobs.page({"ml_steps_total"}),
            "ml_steps_total{run=\"_other\",user=\"alice\",split=\"train\"} 976\n"
            "ml_steps_total{run=\"a\",user=\"alice\",split=\"train\"} 1024\n"
            "ml_steps_total{run=\"a\",user=\"bob\",split=\"train\"} 1\n");
  EXPECT_EQ(jobs.model.usage().users, 2U);
}

/// Five users fill the quota of all users: 8192, and less for the last one.
void fill(JobsBench& jobs) {
  for (std::uint32_t uid = 2000; uid < 2005; ++uid) {
    for (int run = 0; run < 1000; ++run)
      jobs.send(10 + run / 100, "ml.steps:1|c|#run:r" + std::to_string(run), uid);
  }
  ASSERT_GT(jobs.model.usage().series, 40'000U - kSeriesOfEveryRun - 1);
}

TEST(RunQuota, ANewcomerHasItsFirstSeriesAlsoIfOthersHoldAll) {
  JobsBench jobs(kUnhurried);
  fill(jobs);
  jobs.send(10, "ml.steps:1|c|#run:new\nml.loss:2|g|#run:new\nml.step.seconds:0.1|d|#run:new", 1001);
  const std::string page = jobs.page({"ml_steps_total", "ml_loss", "ml_step_duration_seconds"});
  EXPECT_NE(page.find("ml_steps_total{run=\"new\",user=\"bob\",split=\"train\"} 1\n"), std::string::npos);
  EXPECT_NE(page.find("ml_loss{run=\"new\",user=\"bob\",split=\"train\"} 2\n"), std::string::npos);
  EXPECT_NE(page.find("ml_step_duration_seconds_count{run=\"new\",user=\"bob\",split=\"train\"} 1\n"),
            std::string::npos);
  EXPECT_LE(jobs.model.usage().series, 40'000U);
  EXPECT_EQ(sum_of(jobs, "ml_steps_total"), 5001);  // what gave way is summed in `_other`
}

TEST(RunQuota, ARunWithoutProcessesGivesWayFirst) {
  JobsBench jobs(kUnhurried);
  fill(jobs);
  jobs.kill(19);
  jobs.tick();  // the runs r900 .. of each user have no process
  jobs.send(10, "ml.steps:1|c|#run:new", 1001);
  const std::string page = jobs.page({"ml_steps_total"});
  EXPECT_NE(page.find("run=\"new\",user=\"bob\""), std::string::npos);
  for (int run = 0; run < 900; ++run) {
    EXPECT_NE(page.find("{run=\"r" + std::to_string(run) + "\",user=\"user2000\""), std::string::npos) << run;
  }
}

TEST(RunQuota, FullUsersTakeNothingFromEachOther) {
  JobsBench jobs(kUnhurried);
  fill(jobs);
  const std::string before = jobs.page({"ml_run_start_timestamp_seconds"});
  for (int run = 0; run < 100; ++run) jobs.send(10, "ml.steps:1|c|#run:more" + std::to_string(run), 2004);
  EXPECT_EQ(jobs.page({"ml_run_start_timestamp_seconds"}), before);
}

TEST(RunQuota, ANewcomerTakesThePlaceOfASilentUserWithoutProcesses) {
  JobsBench jobs(kUnhurried);
  for (std::uint32_t uid = 2000; uid < 3024; ++uid)
    jobs.send(static_cast<int>(uid), "ml.steps:1|c|#run:a", uid);
  jobs.send(10, "ml.steps:1|c|#run:a", 1001);
  EXPECT_EQ(jobs.dropped(), "series_limit=1 ");  // each user has a process
  jobs.kill(2007);
  jobs.tick();
  jobs.send(10, "ml.steps:1|c|#run:a", 1001);
  EXPECT_EQ(jobs.dropped(), "series_limit=1 ");
  EXPECT_EQ(jobs.model.usage().users, 1024U);
  EXPECT_EQ(sum_of(jobs, "ml_steps_total", "user2007"), 0);
  EXPECT_EQ(sum_of(jobs, "ml_steps_total", "bob"), 1);
}

TEST(RunQuota, OthersProcessesLeaveRoomForTheFirstOfANewcomer) {
  JobsBench jobs(kUnhurried);
  for (std::uint32_t uid = 2000; uid < 2010; ++uid) {
    for (int pid = 1; pid <= 1024; ++pid) jobs.send(pid, "ml.steps:1|c|#run:a", uid);
  }
  EXPECT_EQ(jobs.model.usage().processes, 8192U - 1024 + 3);
  jobs.send(10, "ml.steps:1|c|#run:a", 1001);
  EXPECT_EQ(sum_of(jobs, "ml_steps_total", "bob"), 1);
  EXPECT_NE(jobs.page({"ml_steps_total"}).find("run=\"a\",user=\"bob\""), std::string::npos);
}

TEST(RunQuota, LongPayloadsAndBinaryOnesAreRefused) {
  JobsBench jobs;
  std::string lines;
  for (int i = 0; i < 600; ++i) lines += "ml.steps:1|c|#run:a\n";
  jobs.send(10, lines);
  jobs.send(10, std::string(kMaxPayload, 'x'));
  jobs.send(10, std::string(kMaxPayload + 1, 'x'));
  jobs.send(10,
            "\x7f"
            "ELF\0\1\2\xff\xfe|||::::#,,,"sv);
  jobs.send(10, "ml.steps:1|c|#run:" + std::string(60000, '\xff'));
  EXPECT_EQ(jobs.dropped(), "too_long=1 too_many_lines=88 malformed=2 ");
  std::string replaced;
  for (int i = 0; i < 18; ++i) replaced += "\xEF\xBF\xBD";
  EXPECT_EQ(jobs.page({"ml_steps_total"}),
            "ml_steps_total{run=\"a\",user=\"alice\",split=\"train\"} 512\n"
            "ml_steps_total{run=\"" +
                replaced + "~db5206e5\",user=\"alice\",split=\"train\"} 1\n");
}

TEST(RunQuota, ARunOfTheNameOtherHoldsSumsOnly) {
  JobsBench jobs;
  jobs.send(
      10,
      "ml.steps:3|c|#run:_other\nml.step:3|g|#run:_other\n_e{9,6}:run_start|_other\nml.eval:1|g|#run:_other");
  EXPECT_EQ(jobs.page(), "ml_steps_total{run=\"_other\",user=\"alice\",split=\"train\"} 3\n");
}

TEST(RunQuota, TakesOnOtherLimits) {
  Limits limits;
  limits.lines_per_second = 1;
  JobsBench bench(limits);
  bench.send(1, "ml.steps:1|c|#run:a\nml.steps:1|c|#run:a\n");
  EXPECT_EQ(bench.dropped(), "rate_limit=1 ");
  limits.lines_per_second = 100;
  bench.model.set_limits(limits);
  bench.wait(1);
  bench.send(1, "ml.steps:1|c|#run:a\nml.steps:1|c|#run:a\n");
  EXPECT_EQ(bench.dropped(), "rate_limit=1 ");
  EXPECT_EQ(bench.page({"ml_steps_total"}), "ml_steps_total{run=\"a\",user=\"alice\",split=\"train\"} 3\n");
}

TEST(RunQuota, CountsWhatAClientLost) {
  JobsBench bench;
  bench.send(1, "ml.client.dropped:3|c|#run:a,reason:full\nml.client.dropped:1e18|c|#run:a\n");
  EXPECT_EQ(bench.dropped(), "client=1000003 ");
  bench.send(1, "ml.client.dropped:-1|c\nml.client.dropped:1|g\n");
  EXPECT_EQ(bench.dropped(), "bad_value=1 wrong_type=1 client=1000003 ");
  EXPECT_EQ(bench.page(), "");
}

}  // namespace
}  // namespace gpumeter::jobs
