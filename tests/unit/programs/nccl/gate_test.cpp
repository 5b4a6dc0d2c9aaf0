#include "programs/nccl/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::nccl {
namespace {

/// A /proc whose processes have libraries and sockets.
class NcclGate : public testing::Test {
 protected:
  struct Library {
    std::string path;
    std::string bytes =
        "\x7f"
        "ELF";
  };
  void add(int pid, const std::vector<Library>& libraries, const std::vector<int>& sockets) {
    const std::string folder = std::to_string(pid);
    std::string maps =
        "00400000-00401000 r-xp 00000000 fe:00 1234                       /usr/bin/python3.11\n";
    for (const Library& library : libraries) {
      const std::string file = folder + "/root" + library.path;
      if (!library.path.ends_with(')')) tree_.write(file, library.bytes);
      struct stat facts = {};
      ::stat((tree_ / file).c_str(), &facts);
      for (const char* permissions : {"r--p", "r-xp"}) {
        maps += "7f0000000000-7f0000001000 " + std::string(permissions) + " 00000000 fe:00 " +
                std::to_string(facts.st_ino) + "                     " + library.path + "\n";
      }
    }
    tree_.write(folder + "/maps", maps);
    tree_.write(folder + "/fd/0", "-> /dev/null");
    for (const int socket : sockets) {
      tree_.write(folder + "/fd/" + std::to_string(socket), "-> socket:[" + std::to_string(socket) + "]");
    }
  }
  std::string checked(const std::vector<int>& pids, const std::set<std::uint64_t>& sockets) {
    const Verdict verdict = gate_.check(pids, sockets);
    return verdict.refusal ? std::string(to_string(*verdict.refusal)) + ": " + verdict.reason : "asked";
  }
  static std::string constants(const std::string& text) {
    return std::string(3'000'000, '.') + text + std::string(100, '\0');
  }

  Tree tree_ = make_tree({});
  Gate gate_{tree_.path(), kOldestAsked};
};

TEST_F(NcclGate, AsksVersionsWhoseNameTellsThem) {
  add(10, {{"/usr/lib/x86_64-linux-gnu/libnccl.so.2.29.3"}}, {501});
  add(11, {{"/opt/a b/libnccl.so.2.30.7 (deleted)"}}, {502});
  EXPECT_EQ(checked({10, 11}, {501, 502}), "asked");
  EXPECT_THAT(gate_.check({10, 11}, {501, 502}).members, testing::ElementsAre(10, 11));
}

TEST_F(NcclGate, AsksNoEarlierVersion) {
  add(10, {{"/usr/lib/libnccl.so.2.29.2"}}, {501});
  add(11, {{"/usr/lib/libnccl.so.2.27.3"}}, {502});
  EXPECT_EQ(checked({10}, {501}), "asked");
  EXPECT_EQ(checked({10, 11}, {501, 502}),
            "old_version: process 11 has NCCL 2.27.3; its RAS is safe from 2.29.2 on");
  // A process of the job whose own RAS is off.
  add(12, {{"/usr/lib/libnccl.so.2.26.2"}}, {});
  EXPECT_EQ(checked({10, 12}, {501}),
            "old_version: process 12 has NCCL 2.26.2; its RAS is safe from 2.29.2 on");
  add(13, {{"/a/libnccl.so.2.30.1"}, {"/b/libnccl.so.2.19.3"}}, {503});
  EXPECT_EQ(checked({13}, {503}), "old_version: process 13 has NCCL 2.19.3; its RAS is safe from 2.29.2 on");
}

// PyTorch's wheels install libnccl.so.2.
TEST_F(NcclGate, SearchesLibrariesWithoutVersion) {
  add(10,
      {{"/v/nvidia/nccl/lib/libnccl.so.2", constants("NCCL version mismatch\nNCCL version 2.30.7+cuda13.3")}},
      {501});
  EXPECT_EQ(checked({10}, {501}), "asked");
  add(11, {{"/v/nvidia/nccl/lib/libnccl.so.2", constants("NCCL version 2.27.3+cuda12.9")}}, {502});
  EXPECT_EQ(checked({11}, {502}), "old_version: process 11 has NCCL 2.27.3; its RAS is safe from 2.29.2 on");
  add(12, {{"/opt/rocm/lib/librccl.so.1.0.70302", constants("RCCL version 2.29.7 compiled with ROCm")}},
      {503});
  EXPECT_EQ(checked({12}, {503}), "asked");
  add(13, {{"/v/libnccl.so.2", constants("NCCL version unknown")}}, {504});
  EXPECT_EQ(checked({13}, {504}), "unknown_version: process 13: /v/libnccl.so.2 has no version");
  // The text lies across two reads.
  for (std::size_t front = (1U << 20U) - 24; front <= (1U << 20U); ++front) {
    tree_.remove("14");
    add(14, {{"/v/libnccl.so.2", std::string(front, 'x') + "NCCL version 2.30.7 x"}}, {505});
    ASSERT_EQ(checked({14}, {505}), "asked") << front;
  }
}

TEST_F(NcclGate, AsksNoUnknownProcess) {
  add(10, {{"/usr/lib/libnccl.so.2.29.3"}}, {501});
  EXPECT_EQ(checked({10}, {501, 999}),
            "unknown_version: a socket on the port belongs to no process that is known on a GPU");
  EXPECT_EQ(checked({77}, {501}),
            "unknown_version: a socket on the port belongs to no process that is known on a GPU");
  add(11, {}, {502});
  EXPECT_EQ(checked({10, 11}, {501, 502}), "unknown_version: process 11 has NCCL within another library");
  // A process on a GPU without NCCL, such as a renderer.
  add(12, {{"/usr/lib/libnccl-net.so"}}, {});
  EXPECT_EQ(checked({10, 12}, {501}), "asked");
}

// The mapped file was replaced by another one of the same name.
TEST_F(NcclGate, AsksNoReplacedLibrary) {
  add(10, {{"/v/libnccl.so.2", constants("NCCL version 2.30.7 x")}}, {501});
  tree_.write("10/root/v/other", constants("NCCL version 2.30.7 x"));
  std::filesystem::rename(tree_ / "10/root/v/other", tree_ / "10/root/v/libnccl.so.2");
  EXPECT_EQ(checked({10}, {501}), "unknown_version: process 10: /v/libnccl.so.2 has no version");
}

TEST_F(NcclGate, TellsMissingPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  add(10, {{"/usr/lib/libnccl.so.2.29.3"}}, {501});
  ::chmod((tree_ / "10/maps").c_str(), 0);
  EXPECT_EQ(checked({10}, {501}), "no_permission: process 10: maps: Permission denied");
}

TEST(NcclVersion, TakesVersions) {
  EXPECT_EQ(parse_version("2.29.2"), (Version{2, 29, 2}));
  for (const char* text : {"2.29", "2.29.", "2", "", "2.29.2-1", "a.b.c", "2.29.99999999999"}) {
    EXPECT_EQ(parse_version(text), std::nullopt) << text;
  }
  EXPECT_LT((Version{2, 9, 9}), (Version{2, 29, 2}));
  EXPECT_EQ(version_in_name("libnccl.so.2.29.3"), (Version{2, 29, 3}));
  for (const char* name : {"libnccl.so.2", "libnccl.so", "librccl.so.1.0.70302", "libnccl-net.so.2.29.3"}) {
    EXPECT_EQ(version_in_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace gpumeter::nccl
