#include "collectors/pages/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/scheduler.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

// Given a recording, when read or played, then exactly these pages.

namespace gpumeter::pages {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// One gzip member, as `gpumeter record` writes each page.
std::string member(const RecordedPage& page) {
  const std::string text = heading_of(page) + page.text;
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class RecordingTest : public testing::Test {
 protected:
  /// The texts of all pages, then the Error if there is one.
  std::vector<std::string> read(const std::string& bytes) {
    folder_.write("r", bytes);
    std::vector<std::string> texts;
    Result<Recording> recording = Recording::open(folder_ / "r");
    while (recording) {
      const Result<std::optional<RecordedPage>> page = recording->next();
      if (page && !*page) break;
      texts.push_back(page ? (*page)->text : page.error().message());
      if (!page) break;
    }
    return texts;
  }

  Tree folder_ = make_tree({});
  const std::string one_ = member({1000, "a 1\n"});
  const std::string two_ = member({2000, "a 2\nb 2\n"});
};

TEST_F(RecordingTest, CutAtEachByteOfTheLastPageLosesNoMoreThanThatPage) {
  EXPECT_THAT(read(one_ + two_), testing::ElementsAre("a 1\n", "a 2\nb 2\n"));
  for (std::size_t length = 0; length < two_.size(); ++length) {
    const std::vector<std::string> pages = read(one_ + two_.substr(0, length));
    ASSERT_FALSE(pages.empty()) << length;
    EXPECT_EQ(pages[0], "a 1\n") << length;
    // Its end is a sum of what is complete.
    if (pages.size() == 1) continue;
    EXPECT_THAT(pages, testing::ElementsAre("a 1\n", "a 2\nb 2\n")) << length;
  }
}

TEST_F(RecordingTest, AFileWithoutCompressionIsARecordingToo) {
  EXPECT_THAT(read("# gpumeter: recorded 5 4\na 1\n# gpumeter: recorded 6 0\n"),
              testing::ElementsAre("a 1\n", ""));
}

TEST_F(RecordingTest, ErrorsNameTheFileAndTheByte) {
  const std::string file = folder_ / "r";
  EXPECT_THAT(read(one_ + std::string(one_).replace(20, 4, "????")),
              testing::ElementsAre("a 1\n", file + ": byte " + std::to_string(one_.size()) +
                                                ": the compressed data is damaged"));
  EXPECT_THAT(read("# gpumeter: recorded 5 4\na 1\nb 2\n"),
              testing::ElementsAre("a 1\n", file + ": byte 29: is not the beginning of a recorded page"));
  EXPECT_THAT(
      read("# gpumeter: recorded 5 99999999999\n"),
      testing::ElementsAre(file + ": byte 0: a page must have at most 64 MiB, not 99999999999 bytes"));
  EXPECT_THAT(read(std::string(1000, 'x')),
              testing::ElementsAre(file + ": byte 0: is not the beginning of a recorded page"));
  // The size is believed as far as there are bytes.
  EXPECT_THAT(read("# gpumeter: recorded 5 60000000\na 1\n"), testing::IsEmpty());
  folder_.write("r", "");
  EXPECT_EQ(check_recording(file).error().message(), file + ": has no recorded page");
  EXPECT_EQ(check_recording(folder_.path()).error().message(), folder_.path() + ": is not a regular file");
  EXPECT_EQ(check_recording("/nowhere/r").error().message(), "/nowhere/r: No such file or directory");
}

TEST_F(RecordingTest, PagesAreShownAtTheirTimesAndLeaveAtTheEnd) {
  folder_.write("r", one_ + two_ + member({4000, ""}) +
                         member({5000, "process_threads 9\ngpumeter_collector_up{collector=\"amd\"} 1\n"}));
  Store store;
  Machine machine;
  SystemClock clock;
  Log log(clock, {});
  const Paths paths;
  const ReplaySettings settings{folder_ / "r", 2};
  const auto part = kReplay.open({.name = "replay",
                                  .store = store,
                                  .machine = machine,
                                  .clock = clock,
                                  .log = log,
                                  .paths = paths,
                                  .settings = &settings});
  EXPECT_EQ(part->turn(10s), 500ms);
  EXPECT_EQ(walked(store), "a{} 1\ngpumeter_replay_time_seconds{} 1\n");
  EXPECT_EQ(part->turn(10s + 500ms), 1s);
  EXPECT_EQ(walked(store), "a{} 2\nb{} 2\ngpumeter_replay_time_seconds{} 2\n");
  EXPECT_EQ(part->turn(11s), 500ms) << "not yet";
  EXPECT_EQ(part->turn(11s + 500ms), 500ms);
  EXPECT_EQ(walked(store), "gpumeter_replay_time_seconds{} 4\n") << "the daemon did not answer";
  EXPECT_EQ(part->turn(12s), 500ms);
  EXPECT_EQ(walked(store), "gpumeter_collector_up{collector=\"amd\"} 1\ngpumeter_replay_time_seconds{} 5\n");
  EXPECT_EQ(part->turn(12s + 500ms), Scheduler::kForever);
  EXPECT_EQ(walked(store), "");
}

TEST_F(RecordingTest, WithoutAFileThereIsNoPart) {
  Store store;
  Machine machine;
  SystemClock clock;
  Log log(clock, {});
  const Paths paths;
  const ReplaySettings none;
  EXPECT_EQ(kReplay.open({"replay", store, machine, clock, log, paths, {}, &none}), nullptr);
}

}  // namespace
}  // namespace gpumeter::pages
