#include "daemon/profiles/fetch.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <sstream>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

/// A connection whose other end has sent these bytes, and will send no more unless `stays_open`.
struct Answered {
  explicit Answered(std::string_view bytes, bool stays_open = false) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    ours = Descriptor(ends[0]);
    theirs = Descriptor(ends[1]);
    EXPECT_EQ(send(ends[1], bytes.data(), bytes.size(), 0), std::ssize(bytes));
    if (!stays_open) shutdown(ends[1], SHUT_WR);
  }
  Descriptor ours;
  Descriptor theirs;
};

class Fetch : public testing::Test {
 protected:
  /// The size or the error.
  std::string fetched(const Answered& answered) {
    const auto size = fetch_to_file(answered.ours, "GET / HTTP/1.1\r\n\r\n", {path_, geteuid(), 100},
                                    std::chrono::milliseconds(50));
    return size ? std::to_string(*size) : size.error().message();
  }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  bool is_there() const { return std::filesystem::exists(path_); }

  Tree tree_ = make_tree({});
  std::string path_ = tree_ / "trace.json";
};

TEST_F(Fetch, WritesTheBody) {
  EXPECT_EQ(fetched(Answered("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 5\r\n\r\n"
                             "{\"a\"}and more")),
            "5");
  EXPECT_EQ(content(), "{\"a\"}");
  struct stat facts {};
  ASSERT_EQ(stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
  EXPECT_EQ(fetched(Answered("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")), path_ + ": File exists");
  EXPECT_EQ(content(), "{\"a\"}");
}

TEST_F(Fetch, LeavesNoFileOfAnIncompleteTrace) {
  EXPECT_EQ(fetched(Answered("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabc")),
            "the process ended the connection within the trace");
  EXPECT_EQ(fetched(Answered("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabc", true)),
            "the process sends no trace");
  EXPECT_EQ(fetched(Answered("")), "the process ended the connection");
  const Answered silent("", true);
  EXPECT_EQ(fetched(silent), "the process sends no trace");
  std::array<char, 100> request{};
  const ssize_t got = recv(silent.theirs.number(), request.data(), request.size(), 0);
  EXPECT_EQ(std::string(request.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))),
            "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(fetched(Answered("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
            "the process sends an empty trace");
  EXPECT_EQ(fetched(Answered("HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nx")),
            "the process sends an empty trace");
  EXPECT_EQ(fetched(Answered(std::string(20'000, 'x'))), "the process ended the connection");
  EXPECT_EQ(fetched(Answered("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n")),
            "the trace has 101 bytes, more than 100");
  EXPECT_FALSE(is_there());
}

TEST_F(Fetch, ReportsTheServersReason) {
  EXPECT_EQ(
      fetched(Answered(
          "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 216\r\n\r\nHandler \x1b[31m failed\n\nAt:")),
      "the process answers with HTTP status 500: Handler \xEF\xBF\xBD[31m failed");
  EXPECT_EQ(fetched(Answered("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")),
            "the process answers with HTTP status 404");
  EXPECT_EQ(fetched(Answered("\x15\x03\x01 nonsense\r\n\r\n")), "the process answers with HTTP status 0");
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace gpumeter
