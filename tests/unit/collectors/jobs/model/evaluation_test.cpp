#include "collectors/jobs/model/evaluation.hpp"

#include <gtest/gtest.h>

#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

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
