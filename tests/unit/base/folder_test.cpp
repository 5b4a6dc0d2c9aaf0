#include "base/folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

constexpr mode_t kOwn = 0600;
constexpr auto kCrash = Folder::Outlives::crash;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode_of(const std::string& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777U : 0;
}

Folder opened(const std::string& path) {
  Result<Folder> folder = Folder::open(path);
  if (!folder) throw std::runtime_error(folder.error().message());
  return *std::move(folder);
}

TEST(Folder, MakesWhatIsMissingWithItsModeWhateverTheUmask) {
  const Tree tree = make_tree({});
  const mode_t before = umask(0077);
  const Result<Folder> made = Folder::make(tree / "a//b/./c/", 0751);
  umask(before);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(mode_of(tree / "a"), 0755U);
  EXPECT_EQ(mode_of(tree / "a/b/c"), 0751U);
  EXPECT_TRUE(Folder::make(tree / "a/b/c", 0700));
  EXPECT_EQ(mode_of(tree / "a/b/c"), 0751U) << "a folder that is there keeps its mode";
}

TEST(Folder, FollowsItsOwnLinksOnTheWayAndNoCircle) {
  const Tree tree = make_tree(
      {{"real/file", "text"}, {"link", "-> real"}, {"up", "-> link/../real"}, {"circle", "-> circle"}});
  EXPECT_EQ(*opened(tree / "link").read("file", 10), "text");
  EXPECT_EQ(*opened(tree / "up/.").read("file", 10), "text");
  EXPECT_NE(Folder::open(tree / "circle").error().message().find("Too many levels"), std::string::npos);
  EXPECT_FALSE(Folder::open(tree / "real/file"));
  EXPECT_FALSE(Folder::open(tree / "missing"));
  EXPECT_FALSE(Folder::open(""));
}

TEST(Folder, FollowsNoLinkOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a link away";
  const Tree tree = make_tree({{"real/file", "text"}, {"link", "-> real"}});
  ASSERT_EQ(lchown((tree / "link").c_str(), 4242, 4242), 0);
  EXPECT_EQ(Folder::open(tree / "link").error().message(),
            tree / "link" + ": link is a link of another user, which is not followed");
  EXPECT_FALSE(Folder::make(tree / "link/new", 0755));
}

TEST(Folder, ReplacesAtomicallyAndRemovesADraftThatIsThere) {
  const Tree tree = make_tree({{"outside", "keep"}, {"d/file", "old"}, {"d/file.new", "-> ../outside"}});
  const Folder folder = opened(tree / "d");
  ASSERT_TRUE(folder.replace("file", "new", kOwn, Folder::Outlives::power_cut));
  EXPECT_EQ(text_of(tree / "d/file"), "new");
  EXPECT_EQ(mode_of(tree / "d/file"), kOwn);
  EXPECT_EQ(text_of(tree / "outside"), "keep");
  std::filesystem::create_directories(tree / "d/file.new/below");
  EXPECT_FALSE(folder.replace("file", "newer", kOwn, kCrash));
  EXPECT_EQ(text_of(tree / "d/file"), "new");
}

TEST(Folder, ReplacesALinkAndNotItsTarget) {
  const Tree tree = make_tree({{"outside", "keep"}, {"d/file", "-> ../outside"}});
  ASSERT_TRUE(opened(tree / "d").replace("file", "new", kOwn, kCrash));
  EXPECT_EQ(text_of(tree / "outside"), "keep");
  EXPECT_EQ(text_of(tree / "d/file"), "new");
}

TEST(Folder, TakesOnlySingleNames) {
  const Tree tree = make_tree({{"outside", "keep"}, {"d/e/file", "text"}});
  const Folder folder = opened(tree / "d");
  for (const std::string name : {"../outside", "e/file", "", ".", "..", "/etc/passwd"}) {
    EXPECT_FALSE(folder.read(name, 10)) << name;
    EXPECT_FALSE(folder.create(name, kOwn)) << name;
    EXPECT_FALSE(folder.replace(name, "x", kOwn, kCrash)) << name;
    EXPECT_FALSE(folder.remove(name)) << name;
    EXPECT_FALSE(folder.rename(name, "x")) << name;
  }
  EXPECT_EQ(text_of(tree / "outside"), "keep");
}

TEST(Folder, ReadsRegularFilesUpToALimit) {
  const Tree tree = make_tree({{"file", "12345"}, {"link", "-> file"}});
  ASSERT_EQ(mkfifo((tree / "fifo").c_str(), kOwn), 0);
  const Folder folder = opened(tree.path());
  EXPECT_EQ(*folder.read("file", 5), "12345");
  EXPECT_EQ(folder.read("file", 4).error().message(), tree / "file" + ": is larger than 4 bytes");
  EXPECT_EQ(folder.read("link", 5).error().message(), tree / "link" + ": is a link, which is not followed");
  EXPECT_EQ(folder.read("fifo", 5).error().message(), tree / "fifo" + ": is not a regular file");
  EXPECT_TRUE(folder.lacks("none"));
  EXPECT_FALSE(folder.lacks("link"));
}

TEST(Folder, CreatesNothingWhereANameIsTaken) {
  const Tree tree = make_tree({{"link", "-> missing"}});
  const Folder folder = opened(tree.path());
  EXPECT_FALSE(folder.create("link", kOwn));
  EXPECT_FALSE(std::filesystem::exists(tree / "missing"));
  EXPECT_FALSE(folder.open_lock("link", kOwn));
  EXPECT_TRUE(folder.open_lock("lock", 0644));
  EXPECT_TRUE(folder.open_lock("lock", 0644));
  EXPECT_EQ(mode_of(tree / "lock"), 0644U);
}

TEST(Folder, IsTrustedOnlyIfNobodyElseMayWriteInIt) {
  const Tree tree = make_tree({{"d/file", "text"}});
  EXPECT_TRUE(*Folder::open_trusted(tree / "d"));
  EXPECT_FALSE(*Folder::open_trusted(tree / "none"));
  std::filesystem::create_hard_link(tree / "d/file", tree / "d/second");
  EXPECT_FALSE(opened(tree / "d").read_of(geteuid(), "second", 10)) << "it has another name";
  chmod((tree / "d").c_str(), 0775);
  EXPECT_FALSE(Folder::open_trusted(tree / "d"));
}

TEST(Folder, GivesWhatRootCreatesToItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Tree tree = make_tree({{"d/x", ""}});
  ASSERT_EQ(chown((tree / "d").c_str(), 4242, 4343), 0);
  ASSERT_TRUE(opened(tree / "d").replace("file", "", kOwn, kCrash));
  ASSERT_TRUE(Folder::make(tree / "d/e", 0700));
  for (const char* const name : {"d/file", "d/e"}) {
    struct stat facts {};
    ASSERT_EQ(lstat((tree / name).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, 4242U) << name;
    EXPECT_EQ(facts.st_gid, 4343U) << name;
  }
}

TEST(SocketFile, HasAnAddressThatNobodyCanDirectElsewhere) {
  const Tree tree = make_tree({{"d/x", ""}});
  const Descriptor first(socket(AF_UNIX, SOCK_STREAM, 0));
  const Descriptor second(socket(AF_UNIX, SOCK_STREAM, 0));
  {
    const Result<SocketFile> own = SocketFile::bind(first, tree / "d/a", 0620);
    ASSERT_TRUE(own) << own.error().message();
    EXPECT_TRUE(own->has_own_address());
    EXPECT_EQ(mode_of(tree / "d/a"), 0620U);
    chmod((tree / "d").c_str(), 0777);
    const Result<SocketFile> shared = SocketFile::bind(second, tree / "d/b", 0666);
    ASSERT_TRUE(shared) << shared.error().message();
    EXPECT_FALSE(shared->has_own_address());
    EXPECT_EQ(mode_of(tree / "d/b"), 0666U);
  }
  EXPECT_FALSE(std::filesystem::exists(tree / "d/a"));
  EXPECT_FALSE(std::filesystem::exists(tree / "d/b"));
}

}  // namespace
}  // namespace gpumeter
