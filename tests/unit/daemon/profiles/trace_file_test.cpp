#include "daemon/profiles/trace_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
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

}  // namespace
}  // namespace gpumeter
