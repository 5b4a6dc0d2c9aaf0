#include "daemon/profiles/fetches.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";

class FetchesTest : public testing::Test {
 protected:
  /// Begins with a process that has sent `bytes` and leaves the connection open.
  void begin(int pid, std::string_view bytes) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    theirs_.emplace_back(ends[1]);
    ASSERT_EQ(send(ends[1], bytes.data(), bytes.size(), 0), std::ssize(bytes));
    Fetches::Order order{.connection = Descriptor(ends[0]), .request = "POST /\r\n\r\n", .path = path(pid)};
    order.reader = geteuid();
    order.patience = std::chrono::minutes(10);
    fetches_->start(pid, std::move(order));
  }
  std::vector<Fetches::Ended> wait() {
    for (int i = 0; i < 1000; ++i) {
      if (auto ended = fetches_->take_ended(); !ended.empty()) return ended;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return {};
  }
  std::string path(int pid) const { return tree_ / ("traces/gpumeter_" + std::to_string(pid) + ".json"); }

  const Tree tree_ = make_tree({});
  SystemClock clock_;
  std::vector<Descriptor> theirs_;
  std::optional<Fetches> fetches_{clock_};
};

TEST_F(FetchesTest, WritesATraceAndReportsItOnce) {
  begin(42, std::string(kAnswer) + "trace");
  const auto ended = wait();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].pid, 42);
  EXPECT_EQ(ended[0].error, "");
  std::ostringstream text;
  text << std::ifstream(path(42)).rdbuf();
  EXPECT_EQ(text.str(), "trace");
  EXPECT_TRUE(fetches_->take_ended().empty());
}

TEST_F(FetchesTest, ReportsAServerThatRefusesOrOffersTooMuch) {
  begin(1, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(wait().at(0).error, "the process answers with HTTP status 404");
  begin(2, "HTTP/1.1 200 OK\r\nContent-Length: 536870913\r\n\r\n");
  EXPECT_EQ(wait().at(0).error, "the trace has 536870913 bytes, more than 536870912");
  Fetches::Order order{.socket = tree_ / "none.sock", .path = path(3)};
  fetches_->start(3, std::move(order));
  EXPECT_EQ(wait().at(0).error, tree_ / "none.sock" + ": No such file or directory");
}

TEST_F(FetchesTest, AProcessThatStallsIsGivenUp) {
  begin(42, std::string(kAnswer) + "tr");
  while (!std::filesystem::exists(path(42))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fetches_->stop(42);
  while (std::filesystem::exists(path(42))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(fetches_->take_ended().empty());
}

}  // namespace
}  // namespace gpumeter
