#include "programs/nccl/ras.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "tests/fakes/places.hpp"
#include "tests/fakes/ras_job.hpp"
#include "tests/fakes/ras_server.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter::nccl {
namespace {

using std::chrono::milliseconds;

// The document, or "!" and the error.
std::string asked(const RasServer& server,
                  QueryLimits limits = {std::chrono::seconds(20), kMostAnswerBytes}) {
  Result<std::string> text = ask_ras(kRealClock, AF_INET, server.port(), limits);
  return text ? *std::move(text) : "!" + text.error().message();
}

RasServer::Serve after_ok(std::function<void(RasConnection&)> answer) {
  return [answer = std::move(answer)](RasConnection& client) {
    if (client.line() != "SET FORMAT json") return;
    client.say("OK\n");
    if (client.line() == "STATUS") answer(client);
  };
}

TEST(NcclClient, ReadsTheWholeAnswer) {
  RasJob job;
  std::vector<RasJob::Member> ranks;
  for (int rank = 0; rank < 2000; ++rank) ranks.push_back({.rank = rank});
  job.add("0xa", ranks);
  RasServer server(RasServer::documented([&] { return job.text(); }));
  EXPECT_EQ(asked(server), job.text());
  EXPECT_EQ(server.connections(), 1);
}

TEST(NcclClient, RefusesTextOnly) {
  RasServer server(RasServer::text_only());
  EXPECT_EQ(asked(server), "!no JSON: ERROR: Unknown command SET FORMAT json");
}

TEST(NcclClient, TakesAnAnswerInPieces) {
  RasServer server([](RasConnection& client) {
    client.line();
    for (const char letter : std::string_view("OK\r\n")) client.say({&letter, 1});
    client.line();
    for (const char letter : std::string_view("{\"communicators\": []}")) {
      client.say({&letter, 1});
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  EXPECT_EQ(asked(server), "{\"communicators\": []}");
}

TEST(NcclClient, SurvivesServersThatAreNone) {
  RasServer closes([](RasConnection&) {});
  const std::string closed = asked(closes);
  EXPECT_TRUE(closed == "!the connection was closed" || closed == "!Connection reset by peer") << closed;
  RasServer babbles([](RasConnection& client) {
    while (client.say(std::string(4096, 'x'))) {
    }
  });
  EXPECT_EQ(asked(babbles), "!not NCCL's protocol");
  RasServer lies([](RasConnection& client) {
    client.line(), client.say("HTTP/1.1 400 Bad Request\r\n"), client.line();
  });
  EXPECT_EQ(asked(lies), "!no JSON: HTTP/1.1 400 Bad Request");
}

TEST(NcclClient, LimitsTimeAndBytes) {
  RasServer silent([](RasConnection& client) { client.line(), client.line(); });
  EXPECT_EQ(asked(silent, {milliseconds(50), kMostAnswerBytes}), "!no answer in time");
  // Each byte comes in time, but the document does not end.
  RasServer slow(after_ok([](RasConnection& client) {
    while (!client.stops() && client.say(" ")) std::this_thread::sleep_for(milliseconds(5));
  }));
  EXPECT_EQ(asked(slow, {milliseconds(100), kMostAnswerBytes}), "!no answer in time");
  RasServer endless(after_ok([](RasConnection& client) {
    while (!client.stops() && client.say(std::string(65536, '['))) {
    }
  }));
  EXPECT_EQ(asked(endless, {std::chrono::seconds(20), 1U << 20U}), "!the answer is too long");
}

TEST(NcclClient, FailsWithoutServer) {
  std::uint16_t port = 0;
  {
    port = RasServer([](RasConnection&) {}).port();
  }
  const Result<std::string> text =
      ask_ras(kRealClock, AF_INET, port, {std::chrono::seconds(20), kMostAnswerBytes});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message(), "Connection refused");
}

std::string fixture(const std::string& name) {
  std::ifstream file(places::in_tests("fixtures/nccl/" + name));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string error_of(std::string_view text) {
  const Result<Answer> answer = parse_answer(text);
  return answer ? "" : answer.error().message();
}

TEST(NcclAnswer, ReadsTheDocumentedSample) {
  const Result<Answer> answer = parse_answer(fixture("status_2.29.1.json"));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->version, "2.29.1");
  ASSERT_EQ(answer->communicators.size(), 1U);
  const Communicator& communicator = answer->communicators[0];
  EXPECT_EQ(communicator.id, "0xae94423cfbb2ef4a:0xb7e7187447156001:0xb8242ed28a71381e");
  EXPECT_EQ(communicator.size, 2);
  ASSERT_EQ(communicator.ranks.size(), 2U);
  const Rank& first = communicator.ranks[0];
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(first.host, "172.16.64.245");
  EXPECT_EQ(first.pid, 1524344);
  EXPECT_EQ(first.state, RankState::ok);
  EXPECT_TRUE(first.has_counts);
  EXPECT_EQ(first.total(), 0U);
  const Rank& second = communicator.ranks[1];
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.pid, 1524345);
  EXPECT_EQ(second.device, 1);
  EXPECT_EQ(second.state, RankState::missing);
  EXPECT_FALSE(second.has_counts);
}

TEST(NcclAnswer, RefusesTheTextOfEarlierVersions) {
  EXPECT_NE(fixture("status_2.26.2.txt"), "");
  EXPECT_EQ(error_of(fixture("status_2.26.2.txt")), "the answer is no complete JSON document");
  EXPECT_EQ(error_of("ERROR: Unknown command status\n"), "the answer is no complete JSON document");
}

TEST(NcclAnswer, RefusesTornDocuments) {
  const std::string whole = fixture("status_2.29.1.json");
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    ASSERT_NE(error_of(std::string_view(whole).substr(0, length)), "") << length;
  }
}

// NCCL 2.28.9 prints no comma before the status of a missing rank.
TEST(NcclAnswer, ReadsADocumentWithoutComma) {
  std::string text = fixture("status_2.29.1.json");
  const auto comma = text.find("1,\n          \"status\": {\n            \"unresponsive\"");
  ASSERT_NE(comma, std::string::npos);
  text.erase(comma + 1, 1);
  ASSERT_EQ(error_of(text), "");
  EXPECT_EQ(parse_answer(text)->communicators[0].ranks[1].state, RankState::missing);
}

TEST(NcclAnswer, TellsStatesOfRanks) {
  RasJob job;
  job.add("0xa",
          {{.rank = 0},
           {.rank = 1, .init_state = 7},
           {.rank = 2, .async_error = 7},
           {.rank = 3, .async_error = 1},
           {.rank = 4, .init_state = 3},
           {.rank = 5, .aborted = true}},
          {{.rank = 6}, {.rank = 7, .dead = true}, {.rank = 8, .unresponsive = false}});
  const Result<Answer> answer = parse_answer(job.text());
  ASSERT_TRUE(answer) << answer.error().message();
  std::vector<std::string_view> states;
  for (const Rank& rank : answer->communicators[0].ranks) states.push_back(to_string(rank.state));
  EXPECT_THAT(states,
              testing::ElementsAre("ok", "ok", "ok", "error", "error", "error", "missing", "dead", "ok"));
}

TEST(NcclAnswer, CountsOperations) {
  RasJob job;
  job.add("0xa", {{.rank = 0, .all_reduces = 18446744073709551615U}});
  std::string text = job.text();
  EXPECT_EQ(parse_answer(text)->communicators[0].ranks[0].launched.at(4), 18446744073709551615U);
  text.replace(text.find("18446744073709551615"), 20, "18446744073709551616");
  EXPECT_EQ(error_of(text), "the answer is no complete JSON document");
  text.replace(text.find("\"AllReduce\": 18446744073709551616"), 33, "\"AllToAll\": 5, \"AllReduce\": 3");
  EXPECT_THAT(parse_answer(text)->communicators[0].ranks[0].launched, testing::ElementsAre(1, 0, 2, 0, 3, 5));
}

TEST(NcclAnswer, IsLimited) {
  EXPECT_EQ(error_of(std::string(kMostAnswerBytes + 1, ' ')), "the answer is too long");
  std::string ranks = "{\"communicators\": [{\"ranks\": [";
  for (std::size_t i = 0; i <= kMostRanks; ++i) ranks += "{},";
  EXPECT_EQ(error_of(ranks), "the answer has more than 100000 ranks");
  std::string empty = "{\"communicators\": [";
  for (std::size_t i = 0; i <= kMostRanks; ++i) empty += "{},";
  EXPECT_EQ(error_of(empty), "the answer has more than 100000 ranks");
  EXPECT_EQ(error_of("{\"communicators\": " + std::string(1'000'000, '[')),
            "the answer is no complete JSON document");
  EXPECT_EQ(error_of("{}"), "the answer has no communicators");
}

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
