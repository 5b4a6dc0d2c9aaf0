#include <gtest/gtest.h>

#include "collectors/jobs/wire/line.hpp"
#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

std::string line(std::string_view key, double seconds, std::string_view value = "null",
                 std::string_view metadata = "{}") {
  char time[32];
  std::snprintf(time, sizeof time, "%.0f", (1'700'000'000 + seconds) * 1000);
  return ":::MLLOG {\"namespace\": \"\", \"time_ms\": " + std::string(time) +
         ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"" + std::string(key) +
         "\", \"value\": " + std::string(value) + ", \"metadata\": " + std::string(metadata) + "}";
}

std::string parsed(std::string_view text) {
  const auto result = parse_mllog(text);
  if (!result) return "none";
  if (const auto* refusal = std::get_if<Refusal>(&*result)) return std::string(to_string(*refusal));
  const auto& mllog = std::get<MllogLine>(*result);
  char shown[120];
  std::snprintf(shown, sizeof shown, "kind %d at %g value %g samples %g", static_cast<int>(mllog.kind),
                to_seconds(mllog.unix_time) - 1.7e9, mllog.value, mllog.samples.value_or(-1));
  return shown + (mllog.metric.empty() ? "" : ' ' + mllog.metric) +
         (mllog.text.empty() ? "" : ' ' + mllog.text) + (mllog.success ? " success" : "");
}

TEST(MllogLine, IsFoundBehindOtherText) {
  EXPECT_EQ(parsed(line("run_start", 1.5)), "kind 0 at 1.5 value 0 samples -1");
  EXPECT_EQ(parsed("0: rank 0 " + line("epoch_stop", 2, "null",
                                       R"({"epoch_num": 1, "samples_count": 5000, "file": "t.py"})")),
            "kind 6 at 2 value 0 samples 5000");
  EXPECT_EQ(parsed("epoch 1 done"), "none");
  EXPECT_EQ(parsed(""), "none");
}

TEST(MllogLine, Kinds) {
  EXPECT_EQ(parsed(line("run_stop", 9, "null", R"({"status": "success", "samples_count": 10})")),
            "kind 1 at 9 value 0 samples 10 success");
  EXPECT_EQ(parsed(line("run_stop", 9, "null", R"({"status": "aborted"})")),
            "kind 1 at 9 value 0 samples -1");
  EXPECT_EQ(parsed(line("eval_accuracy", 3, "0.7591", R"({"samples_count": 8})")),
            "kind 2 at 3 value 0.7591 samples 8 eval_accuracy");
  EXPECT_EQ(parsed(line("eval_accuracy", 3, "90", R"({"metric": "FID"})")),
            "kind 2 at 3 value 90 samples -1 FID");
  EXPECT_EQ(parsed(line("target_accuracy", 0, "0.759")), "kind 3 at 0 value 0.759 samples -1 eval_accuracy");
  EXPECT_EQ(parsed(line("global_batch_size", 0, "256")), "kind 4 at 0 value 256 samples -1 eval_accuracy");
  EXPECT_EQ(parsed(line("submission_benchmark", 0, "\"bert\"")), "kind 5 at 0 value 0 samples -1 bert");
  EXPECT_EQ(parsed(line("seed", 0, "\"x\"", "null")), "kind 7 at 0 value 0 samples -1");
}

TEST(MllogLine, WhatIsWrongIsSaid) {
  for (const char* const wrong :
       {":::MLLOG", ":::MLLOG {", ":::MLLOG []", ":::MLLOG 1", ":::MLLOG {}",
        ":::MLLOG {\"key\": \"run_start\"}", ":::MLLOG {\"key\": 1, \"time_ms\": 1}",
        ":::MLLOG {\"key\": \"run_start\", \"time_ms\": \"1\"}",
        ":::MLLOG {\"key\": \"run_start\", \"time_ms\": 4.1e12}",
        ":::MLLOG {\"key\": \"run_start\", \"time_ms\": -1}",
        ":::MLLOG {\"key\": \"\xff\", \"time_ms\": 1}"}) {
    EXPECT_EQ(parsed(wrong), "malformed") << wrong;
  }
  EXPECT_EQ(parsed(":::MLLOG " + std::string(65000, '[')), "malformed");
  EXPECT_EQ(parsed(line("eval_accuracy", 0)), "bad_value");
  EXPECT_EQ(parsed(line("eval_accuracy", 0, "\"0.7\"")), "bad_value");
  EXPECT_EQ(parsed(line("eval_accuracy", 0, "2e18")), "bad_value");
  EXPECT_EQ(parsed(line("eval_accuracy", 0, "NaN")), "malformed");
  EXPECT_EQ(parsed(line("run_stop", 0)), "bad_label");
}

TEST(MllogLine, ARunByItsOwnClock) {
  JobsBench jobs;
  jobs.wait(1000);  // the file is read long after the event
  jobs.mllog(-1, line("submission_benchmark", 0, "\"bert\""));
  jobs.mllog(-1, line("global_batch_size", 0, "448"));
  jobs.mllog(-1, line("target_accuracy", 0, "0.72"));
  jobs.mllog(-1, line("run_start", 10));
  jobs.mllog(-1, line("epoch_start", 11, "null", R"({"samples_count": 0})"));
  jobs.mllog(-1, line("eval_accuracy", 100, "0.5", R"({"samples_count": 1000})"));
  jobs.mllog(-1, line("eval_accuracy", 200, "0.73", R"({"samples_count": 2000})"));
  jobs.mllog(-1, line("block_stop", 201, "null", R"({"samples_count": 2000})"));
  jobs.mllog(-1, line("run_stop", 210, "null", R"({"status": "success"})"));
  jobs.mllog(-1, line("run_start", 5000));
  jobs.mllog(-1, "step 5 loss 2.0");
  EXPECT_EQ(jobs.page(), R"(ml_run_start_timestamp_seconds{run="bert",user="alice"} 1700000010
ml_run_stop_timestamp_seconds{run="bert",user="alice",status="success"} 1700000210
ml_run_time_seconds{run="bert",user="alice"} 200
ml_last_update_timestamp_seconds{run="bert",user="alice"} 1700000210
ml_run_restarts_total{run="bert",user="alice"} 0
ml_lost_steps_total{run="bert",user="alice"} 0
ml_run_info{run="bert",user="alice",model="bert"} 1
ml_eval_value{run="bert",user="alice",metric="eval_accuracy"} 0.73
ml_eval_best_value{run="bert",user="alice",metric="eval_accuracy"} 0.73
ml_target_value{run="bert",user="alice",metric="eval_accuracy"} 0.72
ml_time_to_solution_seconds{run="bert",user="alice",metric="eval_accuracy"} 190
ml_batch_size{run="bert",user="alice"} 448
ml_samples_total{run="bert",user="alice",split="train"} 2000
)");
  EXPECT_EQ(jobs.dropped(), "bad_timestamp=1 ");
}

TEST(MllogLine, LossesAreTheBetterTheLower) {
  JobsBench jobs;
  jobs.mllog(-1, line("submission_benchmark", 0, "\"llama31_8b\""));
  jobs.mllog(-1, line("run_start", 0));
  jobs.mllog(-1, line("target_accuracy", 0, "3.3"));
  for (const auto& [time, value] : {std::pair(10, "3.5"), std::pair(20, "3.2"), std::pair(30, "3.25")}) {
    jobs.mllog(-1, line("eval_accuracy", time, value));
  }
  EXPECT_EQ(jobs.page({"ml_eval_best_value", "ml_time_to_solution_seconds"}),
            "ml_eval_best_value{run=\"bert\",user=\"alice\",metric=\"eval_accuracy\"} 3.2\n"
            "ml_time_to_solution_seconds{run=\"bert\",user=\"alice\",metric=\"eval_accuracy\"} 20\n");
}

}  // namespace
}  // namespace gpumeter::jobs
