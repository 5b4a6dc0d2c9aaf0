#include "programs/profiler/traces.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/fakes/tree.hpp"

namespace gpumeter::profiles {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kService = 54320;
constexpr uid_t kAlice = 54321;
constexpr uid_t kBob = 54322;

/// The process has another effective user for a while. Only as root.
class As {
 public:
  explicit As(uid_t uid) { EXPECT_EQ(seteuid(uid), 0); }
  ~As() { EXPECT_EQ(seteuid(0), 0); }
  As(const As&) = delete;
  As& operator=(const As&) = delete;
};

bool can_read(uid_t uid, const std::string& path) {
  const As user(uid);
  return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)).number() >= 0;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& each : fs::directory_iterator(folder)) names.insert(each.path().filename().string());
  return names;
}

TEST(TraceFile, BelongsToTheReaderIfRootWritesIt) {
  if (geteuid() != 0) GTEST_SKIP() << "requires root";
  const Tree tree = make_tree({});
  ASSERT_TRUE(create(*Folder::open(tree.path()), "trace.json", {tree / "trace.json", kAlice}));
  struct stat facts {};
  ASSERT_EQ(stat((tree / "trace.json").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, kAlice);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
  EXPECT_EQ(create(*Folder::open(tree.path()), "trace.json", {tree / "trace.json", kAlice}).error().message(),
            tree / "trace.json" + ": File exists");
}

TEST(TraceFile, IsReadableByTheReaderAloneIfTheServiceWritesIt) {
  if (geteuid() != 0) GTEST_SKIP() << "requires root";
  const Tree tree = make_tree({});
  fs::permissions(tree.path(), fs::perms::all);
  const std::string path = tree / "trace.json";
  {
    const As service(kService);
    ASSERT_TRUE(create(*Folder::open(tree.path()), "trace.json", {path, kAlice}));
  }
  if (getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) < 0) GTEST_SKIP() << "no ACLs here";
  EXPECT_TRUE(can_read(kService, path));
  EXPECT_TRUE(can_read(kAlice, path));
  EXPECT_FALSE(can_read(kBob, path));
}

TEST(TraceFile, TheOldestTracesMakeRoom) {
  const Tree tree = make_tree({{"t/gpumeter_a_1.json", "12345"},
                               {"t/gpumeter_b_2.json", "12345"},
                               {"t/gpumeter_c_3.json", "12345"},
                               {"t/notes.txt", "12345678901234567890"}});
  const auto age = [&](const char* name, int hours) {
    fs::last_write_time(tree / name, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  age("t/gpumeter_a_1.json", 1);
  age("t/gpumeter_b_2.json", 3);
  age("t/gpumeter_c_3.json", 2);
  ASSERT_TRUE(make_room(tree / "t", 10));
  EXPECT_EQ(names_in(tree / "t"),
            (std::set<std::string>{"gpumeter_a_1.json", "gpumeter_c_3.json", "notes.txt"}));
  ASSERT_TRUE(make_room(tree / "t", 0));
  EXPECT_EQ(names_in(tree / "t"), std::set<std::string>{"notes.txt"});
}

TEST(TraceFile, TheFolderIsCreatedForAllToSee) {
  const Tree tree = make_tree({{"file", ""}});
  const mode_t before = umask(0077);
  const auto made = make_room(tree / "cache/traces", 10);
  umask(before);
  ASSERT_TRUE(made);
  EXPECT_EQ(fs::status(tree / "cache/traces").permissions(), fs::perms(0755));
  EXPECT_EQ(make_room(tree / "file/x", 10).error().message(), tree / "file/x" + ": Not a directory");
}

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
}  // namespace gpumeter::profiles
