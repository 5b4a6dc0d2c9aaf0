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

}  // namespace
}  // namespace gpumeter::jobs
