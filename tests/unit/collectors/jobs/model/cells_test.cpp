#include "collectors/jobs/model/cells.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

TEST(CustomScalar, IsTheLastValueByItsName) {
  JobsBench jobs;
  jobs.send(10, "ml.custom:0.1|g|#metric:learning_rate,run:a\nml.custom:-3:-4|g|#run:a,metric:reward");
  jobs.send(11, "ml.custom:0.01|g|#metric:learning_rate,run:a\nml.custom:7|g|#run:b");
  EXPECT_EQ(jobs.page({"ml_custom"}), R"(ml_custom{run="a",user="alice",metric="learning_rate"} 0.01
ml_custom{run="a",user="alice",metric="reward"} -4
ml_custom{run="b",user="alice",metric="unnamed"} 7
)");
  EXPECT_EQ(jobs.dropped(), "");
}

TEST(CustomScalar, NamesAreLabelTexts) {
  JobsBench jobs;
  jobs.send(10, "ml.custom:1|g|#run:a,metric:" + std::string(70, 'x'));
  jobs.send(10, "ml.custom:2|g|#run:a,metric:a\xff");
  EXPECT_EQ(jobs.page({"ml_custom"}),
            "ml_custom{run=\"a\",user=\"alice\",metric=\"" + std::string(64, 'x') +
                "\"} 1\nml_custom{run=\"a\",user=\"alice\",metric=\"a\xEF\xBF\xBD\"} 2\n");
}

TEST(CustomScalar, ARunHasSixteenAndThoseGoOn) {
  JobsBench jobs;
  for (int i = 0; i < 20; ++i) jobs.send(10, "ml.custom:1|g|#run:a,metric:m" + std::to_string(i));
  EXPECT_EQ(jobs.dropped(), "series_limit=4 ");
  jobs.send(10, "ml.custom:2|g|#run:a,metric:m15\nml.custom:3|g|#run:b,metric:m16");
  EXPECT_EQ(jobs.dropped(), "series_limit=4 ");
  const std::string page = jobs.page({"ml_custom"});
  EXPECT_NE(page.find("metric=\"m15\"} 2\n"), std::string::npos);
  EXPECT_NE(page.find("run=\"b\",user=\"alice\",metric=\"m16\"} 3\n"), std::string::npos);
  EXPECT_EQ(jobs.model.usage().series, 2 * 8U + 16 + 1);
}

TEST(CustomScalar, IsAGaugeAndCountsForTheRunsSeries) {
  JobsBench jobs({.series_per_run = 9});
  jobs.send(10, "ml.custom:1|c|#run:a,metric:m");
  EXPECT_EQ(jobs.dropped(), "wrong_type=1 ");
  jobs.send(10, "ml.custom:1|g|#run:a,metric:m\nml.custom:1|g|#run:a,metric:n");
  EXPECT_EQ(jobs.dropped(), "wrong_type=1 series_limit=1 ");
}

class TimeToSolution : public testing::Test {
 protected:
  void SetUp() override { jobs_.send(10, "_e{9,1}:run_start|a"); }
  void after(double seconds, const char* line) {
    jobs_.wait(seconds);
    jobs_.send(10, line);
  }
  std::string best_and_time() {
    const std::string page = jobs_.page({"ml_eval_best_value", "ml_time_to_solution_seconds"});
    std::string values;
    for (std::size_t at = 0; (at = page.find("} ", at)) != std::string::npos; ++at) {
      values += page.substr(at + 2, page.find('\n', at) - at - 2) + ' ';
    }
    return values;
  }
  JobsBench jobs_;
};

TEST_F(TimeToSolution, IsOfTheFirstEvaluationThatMeetsTheTarget) {
  after(10, "ml.target:0.7|g|#metric:m");
  after(10, "ml.eval:0.6|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.6 ");
  after(10, "ml.eval:0.7|g|#metric:m");
  after(10, "ml.eval:0.9|g|#metric:m");
  after(10, "ml.eval:0.1|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.9 30 ");
}

TEST_F(TimeToSolution, LowerIsBetterWhereTheJobSaysSo) {
  after(10, "ml.target:0.2|g|#metric:m,direction:min");
  after(10, "ml.eval:0.3|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.3 ");
  after(10, "ml.eval:0.15|g|#metric:m");
  after(10, "ml.eval:0.25|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.15 30 ");
}

TEST_F(TimeToSolution, ATargetAfterTheEvaluationIsMetByIt) {
  after(10, "ml.eval:0.8|g|#metric:m");
  after(10, "ml.target:0.7|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.8 10 ");
  after(10, "ml.target:0.9|g|#metric:m");  // a new target must be met again
  EXPECT_EQ(best_and_time(), "0.8 ");
  after(10, "ml.eval:0.9|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.9 40 ");
}

TEST_F(TimeToSolution, MetricsAreApart) {
  after(10, "ml.target:1|g|#metric:m\nml.eval:1|g|#metric:n");
  EXPECT_EQ(best_and_time(), "1 ");
}

TEST_F(TimeToSolution, LowerIsBetterForALossUnlessTheJobSaysOtherwise) {
  after(10, "ml.eval:2|g|#metric:eval_loss\nml.eval:1|g|#metric:eval_loss\nml.eval:3|g|#metric:eval_loss");
  EXPECT_EQ(best_and_time(), "1 ");
  after(10, "ml.eval:2|g|#metric:loss,direction:max\nml.eval:3|g|#metric:loss,direction:max");
  EXPECT_EQ(best_and_time(), "1 3 ");
  after(10, "ml.eval:2|g|#metric:m,direction:min\nml.eval:3|g|#metric:m,direction:min");
  EXPECT_EQ(best_and_time(), "1 3 2 ");
}

TEST(LowerIsUsual, OfErrorsAndLosses) {
  for (const char* const name :
       {"loss", "val_loss", "eval/loss", "Loss", "perplexity", "eval_perplexity", "error", "top1_error",
        "word_error_rate", "error_rate", "wer", "cer", "rmse", "mse", "mae", "test-MAE"}) {
    EXPECT_TRUE(lower_is_usual(name)) << name;
  }
  for (const char* const name :
       {"accuracy", "top1", "loss_scale", "closs", "rate", "rate_rate", "f1", "bleu", "", "hamster"}) {
    EXPECT_FALSE(lower_is_usual(name)) << name;
  }
}

/// A run that began 100 s before its first message.
class LateTimeToSolution : public TimeToSolution {
 protected:
  void SetUp() override { jobs_.send(10, "ml.eval:0.6|g|#run:a,metric:m"); }
  const char* const start_ = "_e{9,1}:run_start|a|d:1699999900|#run:a";
};

TEST_F(LateTimeToSolution, IsUnknownIfTheFirstEvaluationMeetsTheTarget) {
  after(10, "ml.target:0.6|g|#run:a,metric:m");
  after(0, start_);
  EXPECT_EQ(best_and_time(), "0.6 ");
  after(10, "ml.eval:0.7|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.7 ");
  after(10, "ml.target:0.8|g|#metric:m\nml.eval:0.8|g|#metric:m");  // another target
  EXPECT_EQ(best_and_time(), "0.8 130 ");
}

TEST_F(LateTimeToSolution, IsKnownAfterAWorseEvaluation) {
  after(0, start_);
  after(10, "ml.target:0.7|g|#metric:m\nml.eval:0.7|g|#metric:m");
  EXPECT_EQ(best_and_time(), "0.7 110 ");
}

TEST_F(LateTimeToSolution, IsNeverNegative) {
  after(10, "ml.target:0.6|g|#run:a,metric:m");
  EXPECT_EQ(best_and_time(), "0.6 0 ");
  after(10, "_e{9,1}:run_start|a|#run:a");  // from a client that reports no time
  EXPECT_EQ(best_and_time(), "0.6 ");
}

}  // namespace

}  // namespace gpumeter::jobs
