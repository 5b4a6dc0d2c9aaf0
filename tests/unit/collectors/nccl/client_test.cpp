#include "collectors/nccl/client.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <thread>

#include "collectors/nccl/answer.hpp"
#include "tests/fakes/ras_job.hpp"
#include "tests/fakes/ras_server.hpp"
#include "tests/fakes/real_clock.hpp"

namespace gpumeter::nccl {
namespace {

using std::chrono::milliseconds;

// The document, or "!" and the error.
std::string asked(const RasServer& server, QueryLimits limits = {std::chrono::seconds(20), kMostAnswerBytes},
                  int waker = -1) {
  RasClient client(kRealClock, limits, waker);
  Result<std::string> text = client.status(AF_INET, server.port());
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

TEST(NcclClient, EndsWhenItIsWoken) {
  const Descriptor waker(eventfd(1, EFD_CLOEXEC));
  RasServer silent([](RasConnection& client) { client.line(), client.line(); });
  EXPECT_EQ(asked(silent, {std::chrono::seconds(20), kMostAnswerBytes}, waker.number()), "!the daemon stops");
}

TEST(NcclClient, FailsWithoutServer) {
  std::uint16_t port = 0;
  {
    port = RasServer([](RasConnection&) {}).port();
  }
  RasClient client(kRealClock, {std::chrono::seconds(20), kMostAnswerBytes});
  const Result<std::string> text = client.status(AF_INET, port);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message(), "Connection refused");
}

}  // namespace
}  // namespace gpumeter::nccl
