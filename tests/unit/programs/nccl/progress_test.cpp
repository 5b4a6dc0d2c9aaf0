#include "programs/nccl/progress.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/ras_job.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter::nccl {
namespace {

class NcclProgress : public testing::Test {
 protected:
  void answer(const RasJob& job, std::chrono::seconds at) {
    const Result<Answer> answer = parse_answer(job.text());
    ASSERT_TRUE(answer) << answer.error().message();
    progress_.update(
        *answer, [](const Rank& rank) { return rank.host == "127.0.0.1"; }, at);
    now_ = at;
  }
  void answer(const std::vector<RasJob::Member>& ranks, const std::vector<RasJob::Missing>& missing,
              std::chrono::seconds at) {
    RasJob job;
    job.add("0xa", ranks, missing);
    answer(job, at);
  }

  /// The page, without the labels run and user and the start of the names.
  std::string page() {
    progress_.write(Labels({{"run", "r"}, {"user", "u"}}), series_);
    series_.commit(now_);
    std::string text = walked(store_);
    for (const std::string part : {"ml_nccl_", "run=\"r\",user=\"u\",", "{run=\"r\",user=\"u\"}"}) {
      for (auto at = text.find(part); at != std::string::npos; at = text.find(part))
        text.erase(at, part.size());
    }
    return text;
  }
  bool has(const std::string& line) { return page().find(line + "\n") != std::string::npos; }

  Store store_;
  SeriesList series_{store_.attach()};
  Progress progress_;
  Nanoseconds now_{};
};

TEST_F(NcclProgress, ShowsAJob) {
  answer({{.rank = 0, .all_reduces = 10}, {.rank = 1, .all_reduces = 12, .host = "10.0.0.9"}}, {},
         std::chrono::seconds(30));
  EXPECT_EQ(
      page(),
      "collectives_total{op=\"broadcast\"} 1\ncollectives_total{op=\"reduce\"} 0\n"
      "collectives_total{op=\"all_gather\"} 2\ncollectives_total{op=\"reduce_scatter\"} 0\n"
      "collectives_total{op=\"all_reduce\"} 10\nrank_lag 2\n"
      "ranks{state=\"ok\"} 2\nranks{state=\"error\"} 0\nranks{state=\"missing\"} 0\nranks{state=\"dead\"} 0\n"
      "stalled_seconds 0\n");
  EXPECT_TRUE(progress_.leads());
}

TEST_F(NcclProgress, NamesTheRankThatStandsStill) {
  using std::chrono::seconds;
  answer({{.rank = 0, .all_reduces = 10}, {.rank = 1, .all_reduces = 10, .host = "10.0.0.9"}}, {},
         seconds(0));
  // Rank 1 stops at 11; rank 0 launches two more and waits.
  answer({{.rank = 0, .all_reduces = 13}, {.rank = 1, .all_reduces = 11, .host = "10.0.0.9"}}, {},
         seconds(30));
  EXPECT_EQ(page().find("stalled_rank"), std::string::npos);
  answer({{.rank = 0, .all_reduces = 13}, {.rank = 1, .all_reduces = 11, .host = "10.0.0.9"}}, {},
         seconds(60));
  EXPECT_TRUE(has("stalled_rank{rank=\"1\",host=\"10.0.0.9\",state=\"behind\"} 1"));
  EXPECT_TRUE(has("rank_lag 2"));
  EXPECT_TRUE(has("stalled_seconds 30"));
  answer({{.rank = 0, .all_reduces = 15}, {.rank = 1, .all_reduces = 14, .host = "10.0.0.9"}}, {},
         seconds(90));
  EXPECT_EQ(page().find("stalled_rank"), std::string::npos);
  EXPECT_TRUE(has("stalled_seconds 0"));
}

// All launched the same operation, which never completes on the GPUs.
TEST_F(NcclProgress, MeasuresHowLongNobodyLaunches) {
  for (int at = 0; at <= 120; at += 30) {
    answer({{.rank = 0, .all_reduces = 10}, {.rank = 1, .all_reduces = 10, .pid = 101}}, {},
           std::chrono::seconds(at));
  }
  EXPECT_TRUE(has("stalled_seconds 120"));
  EXPECT_TRUE(has("rank_lag 0"));
  EXPECT_EQ(page().find("stalled_rank"), std::string::npos);
}

TEST_F(NcclProgress, NamesMissingAndDeadRanks) {
  answer({{.rank = 0}}, {{.rank = 1}, {.rank = 2, .dead = true, .pid = 201}}, std::chrono::seconds(0));
  EXPECT_TRUE(has("ranks{state=\"ok\"} 1"));
  EXPECT_TRUE(has("ranks{state=\"missing\"} 1"));
  EXPECT_TRUE(has("ranks{state=\"dead\"} 1"));
  EXPECT_TRUE(has("stalled_rank{rank=\"1\",host=\"10.0.0.2\",state=\"missing\"} 1"));
  EXPECT_TRUE(has("stalled_rank{rank=\"2\",host=\"10.0.0.2\",state=\"dead\"} 1"));
}

TEST_F(NcclProgress, NamesAFewOfManyRanks) {
  std::vector<RasJob::Missing> missing;
  for (int rank = 1; rank <= 40; ++rank) missing.push_back({.rank = rank, .pid = 200 + rank});
  answer({{.rank = 0}}, missing, std::chrono::seconds(0));
  const std::string text = page();
  EXPECT_TRUE(has("stalled_rank{rank=\"16\",host=\"10.0.0.2\",state=\"missing\"} 1"));
  EXPECT_EQ(text.find("rank=\"17\""), std::string::npos);
}

// A GPU that is a member of two communicators is one rank; its number is that of the larger one.
TEST_F(NcclProgress, CountsAGpuOnce) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .all_reduces = 3}, {.rank = 1, .all_reduces = 3, .pid = 101}}, {{.rank = 2}});
  job.add("0xb", {{.rank = 0, .all_reduces = 5}}, {{.rank = 1, .pid = 101}});
  answer(job, std::chrono::seconds(0));
  EXPECT_TRUE(has("ranks{state=\"ok\"} 2"));  // rank 1 of 0xb has another device number
  EXPECT_TRUE(has("collectives_total{op=\"all_reduce\"} 11"));
}

TEST_F(NcclProgress, CountersSurviveCommunicators) {
  answer({{.rank = 0, .all_reduces = 10}}, {}, std::chrono::seconds(0));
  RasJob other;
  other.add("0xb", {{.rank = 0, .all_reduces = 4}});
  answer(other, std::chrono::seconds(30));
  EXPECT_TRUE(has("collectives_total{op=\"all_reduce\"} 14"));
  EXPECT_TRUE(has("stalled_seconds 0"));
  RasJob again;
  again.add("0xb", {{.rank = 0, .all_reduces = 1}});  // a new one with the same name
  answer(again, std::chrono::seconds(60));
  EXPECT_TRUE(has("collectives_total{op=\"all_reduce\"} 15"));
}

TEST_F(NcclProgress, ALaterHostDoesNotLead) {
  answer({{.rank = 0, .host = "10.0.0.9"}, {.rank = 1}}, {}, std::chrono::seconds(0));
  EXPECT_FALSE(progress_.leads());
  answer({{.rank = 1}}, {{.rank = 0}}, std::chrono::seconds(30));
  EXPECT_TRUE(progress_.leads());
}

TEST_F(NcclProgress, AJobWithoutCommunicatorsHasNotStalled) {
  answer(RasJob(), std::chrono::seconds(0));
  answer(RasJob(), std::chrono::seconds(300));
  EXPECT_EQ(page().find("stalled_seconds"), std::string::npos);
  EXPECT_TRUE(has("ranks{state=\"ok\"} 0"));
}

}  // namespace
}  // namespace gpumeter::nccl
