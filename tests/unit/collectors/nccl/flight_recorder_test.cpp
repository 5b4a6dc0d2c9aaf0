#include "collectors/nccl/files/flight_recorder.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/nccl_files.hpp"

namespace gpumeter::nccl {
namespace {

class NcclFlightRecorder : public testing::Test, protected FilesBench {
 protected:
  bool look(double now) { return recorder_.look(owners(), at(now)); }
  std::string page() { return FilesBench::page(recorder_); }
  std::string states() const { return FilesBench::states(recorder_); }

  /// The page's lines without the labels of all of them.
  std::string brief() {
    std::string text = page();
    const std::string same = ",prefix=\"" + (tree / "rank_") + "\"";
    for (std::size_t at = 0; (at = text.find(same)) != std::string::npos;) text.erase(at, same.size());
    return text;
  }

  std::string rank_0_ = fixture("flight_recorder/rank_0.pickle");
  std::string rank_1_ = fixture("flight_recorder/rank_1.json");
  std::string rank_2_ = fixture("flight_recorder/rank_2.pickle");
  FlightRecorder recorder_{{tree / "rank_"}, say()};
};

// Real dumps of three ranks, the first of which is a pickle and the second JSON.
TEST_F(NcclFlightRecorder, ShowsHowFarEachRankIs) {
  write("rank_0", rank_0_, 0);
  write("rank_1", rank_1_, 0);
  write("rank_2", rank_2_, 1);
  EXPECT_FALSE(look(30));
  const std::string labels = "{run=\"train.service\",user=\"ann\",rank=";
  const auto sequence = [&](const std::string& rest) {
    return "ml_flight_recorder_collective" + labels + rest + "\n";
  };
  const auto time = [&](const std::string& rest) {
    return "ml_flight_recorder_dump_timestamp_seconds" + labels + rest + "\n";
  };
  const std::string all = ",group=\"0\",description=\"default_pg\"";
  EXPECT_EQ(brief(), sequence("\"0\"" + all + ",state=\"enqueued\"} 7") +
                         sequence("\"0\"" + all + ",state=\"completed\"} 6") +
                         sequence("\"0\",group=\"1\",state=\"enqueued\"} 2") +
                         sequence("\"0\",group=\"1\",state=\"completed\"} 2") +
                         sequence("\"1\"" + all + ",state=\"enqueued\"} 7") +
                         sequence("\"1\"" + all + ",state=\"completed\"} 6") +
                         sequence("\"1\",group=\"1\",state=\"enqueued\"} 2") +
                         sequence("\"1\",group=\"1\",state=\"completed\"} 2") +
                         sequence("\"2\"" + all + ",state=\"enqueued\"} 6") +
                         sequence("\"2\"" + all + ",state=\"completed\"} 6") + time("\"0\"} 1790000000") +
                         time("\"1\"} 1790000000") + time("\"2\"} 1790000001"));
  EXPECT_EQ(states(), "read=3");
  EXPECT_EQ(said, "");
}

TEST_F(NcclFlightRecorder, KeepsARunThatEnded) {
  write("rank_0", rank_0_, 0);
  look(5);
  const std::string before = page();
  uses.clear();
  look(3600);
  EXPECT_EQ(page(), before);
  look(3601);
  EXPECT_EQ(page(), "");
  EXPECT_EQ(states(), "stale=1");
}

// After a start of the daemon the processes may belong to a later run of the same user.
TEST_F(NcclFlightRecorder, AnOldDumpHasNoRun) {
  write("rank_0", rank_0_, 0);
  look(300);
  EXPECT_NE(page().find("ml_flight_recorder_dump_timestamp_seconds{user=\"ann\",prefix="), std::string::npos);
}

TEST_F(NcclFlightRecorder, AStrangersDumpIsForeign) {
  uses.clear();
  write("rank_0", rank_0_, 0);
  look(5);
  EXPECT_EQ(page(), "");
  EXPECT_EQ(states(), "foreign=1");
}

// The attack: a user without a process on a GPU makes as many files as the folder takes.
TEST_F(NcclFlightRecorder, AStrangersFilesTakeNoPlaceOfAJobs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  for (int rank = 0; rank < 3000; ++rank) {
    const std::string name = "rank_" + std::to_string(rank);
    write(name, rank_0_, 0);
    ASSERT_EQ(::chown((tree / name).c_str(), 4711, 4711), 0);
  }
  for (int rank = 3000; rank < 3008; ++rank) write("rank_" + std::to_string(rank), rank_1_, 0);
  look(30);
  EXPECT_EQ(states(), "read=8 foreign=56");
  uses.clear();
  look(40);
  EXPECT_EQ(states(), "read=8 foreign=56") << "the job has ended";
  put_on_gpu(4711, "GPU-c2000000-0000-4000-8000-000000000000");
  put_on_gpu(::geteuid(), "GPU-c2000000-0000-4000-8000-000000000000");
  look(50);
  EXPECT_EQ(states(), "read=64");
  EXPECT_NE(page().find("rank=\"3007\""), std::string::npos) << "two jobs share the places";
}

TEST_F(NcclFlightRecorder, DumpsOfAnEarlierStallLeave) {
  write("rank_0", rank_0_, 0);
  look(5);
  write("rank_2", rank_2_, 601);
  look(610);
  EXPECT_EQ(states(), "read=1 stale=1");
  EXPECT_EQ(page().find("rank=\"0\""), std::string::npos);
}

TEST_F(NcclFlightRecorder, ATornDumpIsReadLaterOrRefused) {
  write("rank_0", rank_0_.substr(0, 1000), 0);
  EXPECT_TRUE(look(5));
  EXPECT_EQ(states(), "torn=1");
  write("rank_0", rank_0_, 6);
  EXPECT_TRUE(look(6.5));
  EXPECT_FALSE(look(8));
  EXPECT_EQ(states(), "read=1");
  write("rank_1", rank_1_.substr(0, 1000), 8);
  EXPECT_TRUE(look(100));
  EXPECT_FALSE(look(200));
  EXPECT_EQ(states(), "read=1 invalid=1");
  EXPECT_EQ(said, "rank_1: the dump is not complete\n");
}

TEST_F(NcclFlightRecorder, APickleThatCallsFunctionsIsRefused) {
  write("rank_0",
        "\x80\x02"
        "cos\nsystem\n(U\x02idtR.",
        0);
  write("rank_2", rank_2_, 0);
  look(5);
  look(15);
  EXPECT_EQ(said, "rank_0: byte 2: opcode GLOBAL is refused, only data is read\n");
  EXPECT_EQ(states(), "read=1 invalid=1");
}

TEST_F(NcclFlightRecorder, OtherNamesAreNoDumps) {
  for (const char* name : {"rank_", "rank_0.bak", "rank_01", "rank_-1", "rank_x", "range_0"})
    write(name, rank_0_, 0);
  look(5);
  EXPECT_EQ(states(), "");
}

}  // namespace
}  // namespace gpumeter::nccl
