#include "programs/top/view.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/programs/top/machine.hpp"

namespace gpumeter::top {
namespace {

std::string text_of(const Lines& lines) {
  std::string text;
  for (const Line& line : lines) {
    const std::string whole = line.text();
    text += whole.substr(0, whole.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

class ViewTest : public testing::Test {
 protected:
  std::string screen(int height = 24, int width = 80) {
    Frame frame;
    frame.width = width;
    frame.height = height;
    frame.host = "node17";
    frame.time = "11:25:03";
    const Lines lines = compose(view_, snapshot_, frame);
    EXPECT_EQ(static_cast<int>(lines.size()), height);
    for (const Line& line : lines) EXPECT_LE(width_of(line.text()), width) << line.text();
    selected_.clear();
    for (const Line& line : lines) selected_ += line.is_selected ? line.text().substr(0, 3) : "";
    return text_of(lines);
  }
  bool letter(char it) { return press(view_, snapshot_, {Key::letter, it}); }
  void key(Key it) { press(view_, snapshot_, {it}); }

  View view_;
  Snapshot snapshot_ = machine();
  std::string selected_;  ///< the GPU of the selected row
};

TEST_F(ViewTest, ListsTheWorstGpuFirst) {
  EXPECT_EQ("\n" + screen(), R"(
gpumeter 1.2.3  node17  3 GPUs  1 failed  1 degraded  1 ok  461 W       11:25:03
3 x NVIDIA H100 80GB
GPU STATE    UTIL           POWER W   MEM GiB TEMP MARGIN THROTTLE HELD BY
  2 failed      -                 -         -    -      - -        -
    The GPU is lost (reboot)
  1 degraded   0%           100/450 40.0/80.0   88      2 thermal  -
    Slowed down by heat
  0 ok        87% ||||||||  361/450 40.0/80.0   65     25 power    llama (alice)

RUN              USER   STATE     STEP  STEP/S   LOSS PHASE             GPUS
llama            alice  running   1200       -   2.46 -                 0

GPU USED BY          USER   SHARE MEM GiB
  0 slurm_job 4711   alice    75%    30.0
  0 x                         25%       -








q quit  ? help  Enter detail  j jobs  s/g/u/p/m/t: by state
)");
}

/// 5 minutes of GPU 0: a minute without values, then idle, then busy.
Past five_minutes() {
  Past past{"GPU-0", {}, {}, {}, {}};
  for (int i = 0; i < 300; ++i) {
    const bool is_busy = i >= 150;
    past.utilization.push_back(i < 60 ? std::nullopt : Number(is_busy ? 0.87 : 0));
    past.power.push_back(i < 60 ? std::nullopt : Number(is_busy ? 361 : 100));
    past.memory.push_back(40.0 * kGiB);
    past.temperature.push_back(40 + i / 12.0);
  }
  return past;
}

TEST_F(ViewTest, AWideScreenHasPlotsAndUsers) {
  letter('g');
  snapshot_.past = five_minutes();
  EXPECT_EQ("\n" + screen(50, 200), R"(
gpumeter 1.2.3  node17  3 GPUs  1 failed  1 degraded  1 ok  461 W                                                                                                                               11:25:03
3 x NVIDIA H100 80GB
GPU STATE    UTIL                          POWER W   MEM GiB TEMP MARGIN THROTTLE HELD BY
  0 ok        87% |||||||||||||||||||||    361/450 40.0/80.0   65     25 power    llama (alice)
  1 degraded   0%                          100/450 40.0/80.0   88      2 thermal  -
    Slowed down by heat
  2 failed      -                                -         -    -      - -        -
    The GPU is lost (reboot)

RUN              USER   STATE     STEP  STEP/S   LOSS PHASE               TIME   ENERGY GPUS         GPU 0, last 5 minutes
llama            alice  running   1200       -   2.46 -                  5m00s        - 0            Utilization 87%
                                                                                                      100%
GPU USED BY          USER   SHARE MEM GiB                                                                                                                 ||||||||||||||||||||||||||||||||||||||||||||||
  0 slurm_job 4711   alice    75%    30.0                                                                                                                 ||||||||||||||||||||||||||||||||||||||||||||||
  0 x                         25%       -                                                                                                                 ||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                                                          ||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                                                         .||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                                                         |||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                             ............................|||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                     Power 361/450 W
                                                                                                       450
                                                                                                                                                          ..............................................
                                                                                                                                                          ||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                                                          ||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                                                         .||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                                                         |||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                             ::::::::::::::::::::::::::::|||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                                             |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                     Memory 40.0/80.0 GiB
                                                                                                      80.0



                                                                                                           |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                           |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                           |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                           |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                     Temperature 65, margin 25
                                                                                                        90

                                                                                                                                                                          ................::::::::::::::
                                                                                                                                 ...............::::::::::::::::||||||||||||||||||||||||||||||||||||||||
                                                                                                           :::::::::::||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                           |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                           |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||
                                                                                                           |||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||||



q quit  ? help  Enter detail  j jobs  s/g/u/p/m/t: by gpu
)");
}

TEST_F(ViewTest, PlotsAreThoseOfTheSelectedGpu) {
  Frame frame;
  frame.width = 200;
  frame.height = 50;
  EXPECT_EQ(plotted_gpu(view_, snapshot_, frame), "GPU-2") << "the worst is selected";
  key(Key::down);
  EXPECT_EQ(plotted_gpu(view_, snapshot_, frame), "GPU-1");
  snapshot_.past = five_minutes();
  EXPECT_EQ(screen(50, 200).find("Utilization"), std::string::npos) << "not those of GPU 0";
  key(Key::enter);
  EXPECT_EQ(plotted_gpu(view_, snapshot_, frame), "GPU-1");
  letter('j');
  EXPECT_EQ(plotted_gpu(view_, snapshot_, frame), "");
  letter('j');
  frame.width = 80;
  EXPECT_EQ(plotted_gpu(view_, snapshot_, frame), "");
}

TEST_F(ViewTest, OnlyFailedGpusKeepTheirNotesIfRowsAreFew) {
  const std::string page = screen(9);
  EXPECT_NE(page.find("The GPU is lost (reboot)"), std::string::npos) << page;
  EXPECT_EQ(page.find("Slowed down by heat"), std::string::npos) << page;
}

TEST_F(ViewTest, SortsByKey) {
  EXPECT_TRUE(letter('g'));
  screen();
  EXPECT_EQ(selected_, "  0");
  letter('r');
  screen();
  EXPECT_EQ(selected_, "  2");
  letter('t');
  EXPECT_EQ(view_.sort, Sort::temperature);
  EXPECT_FALSE(view_.is_reversed);
  screen();
  EXPECT_EQ(selected_, "  1");
}

TEST_F(ViewTest, TheSelectionFollowsItsGpu) {
  screen();
  EXPECT_EQ(selected_, "  2");
  key(Key::down);
  screen();
  EXPECT_EQ(selected_, "  1");
  letter('u');
  screen();
  EXPECT_EQ(selected_, "  1");
  key(Key::last);
  key(Key::down);
  screen();
  EXPECT_EQ(selected_, "  2") << "its utilization is unknown";
}

TEST_F(ViewTest, ShowsOneGpu) {
  key(Key::down);
  key(Key::enter);
  EXPECT_EQ(screen(14),
            "gpumeter 1.2.3  node17  3 GPUs  1 failed  1 degraded  1 ok  461 W       11:25:03\n"
            "3 x NVIDIA H100 80GB\n"
            "GPU 1  NVIDIA H100 80GB  degraded for 1m15s\n"
            "Identity     GPU-1\n"
            "degraded     Slowed down by heat\n"
            "             reason thermal_throttling  for 1m15s  alert GpuThermalThrottling\n"
            "Utilization    0%  [                              ]\n"
            "Power        100 W of 450 W\n"
            "Memory       40.0 of 80.0 GiB (50%)\n"
            "Temperature  core 88 (margin 2)  memory - (margin 7)\n"
            "Throttled    thermal 1m15s (now)\n"
            "\n"
            "\n"
            "Esc back  Up/Down scroll  ? help  q quit\n");
  key(Key::back);
  EXPECT_EQ(view_.page, View::Page::gpus);
}

TEST_F(ViewTest, ShowsJobs) {
  letter('j');
  EXPECT_EQ(screen(6),
            "gpumeter 1.2.3  node17  3 GPUs  1 failed  1 degraded  1 ok  461 W       11:25:03\n"
            "3 x NVIDIA H100 80GB\n"
            "RUN              USER   STATE     STEP  STEP/S   LOSS PHASE             GPUS\n"
            "llama            alice  running   1200       -   2.46 -                 0\n"
            "\n"
            "Esc back  Up/Down scroll  ? help  q quit\n");
  letter('j');
  EXPECT_EQ(view_.page, View::Page::gpus);
}

TEST_F(ViewTest, HelpReturnsToItsPage) {
  letter('j');
  letter('?');
  EXPECT_EQ(view_.page, View::Page::help);
  key(Key::back);
  EXPECT_EQ(view_.page, View::Page::jobs);
  EXPECT_FALSE(letter('q'));
}

TEST_F(ViewTest, ALongListScrollsToTheSelection) {
  for (int i = 3; i < 96; ++i) {
    Gpu gpu = snapshot_.gpus[0];
    gpu.index = std::to_string(i);
    gpu.uuid = "GPU-" + gpu.index;
    snapshot_.gpus.push_back(gpu);
  }
  letter('g');
  key(Key::page_down);
  const std::string page = screen(16);
  EXPECT_EQ(selected_, " 10");
  EXPECT_NE(page.find("\n 10 ok"), std::string::npos) << page;
  EXPECT_NE(page.find("\nllama "), std::string::npos) << "jobs keep their place\n" << page;
}

TEST_F(ViewTest, NothingLeavesASmallScreen) {
  for (int height = 1; height < 12; ++height) screen(height);
  Frame frame;
  for (frame.width = 1; frame.width < 200; ++frame.width) {
    for (view_.page = View::Page::gpus; view_.page <= View::Page::help;
         view_.page = static_cast<View::Page>(static_cast<int>(view_.page) + 1)) {
      for (const Line& line : compose(view_, snapshot_, frame)) {
        if (frame.width >= 40) {
          ASSERT_LE(width_of(line.text()), frame.width) << line.text();
        }
      }
    }
  }
}

TEST_F(ViewTest, SaysHowOldTheValuesAre) {
  Frame frame;
  frame.stale_seconds = 12;
  frame.problem = "Connection refused";
  const Lines lines = compose(view_, snapshot_, frame);
  EXPECT_EQ(lines[2].text(), "No answer for 12s: Connection refused");
}

TEST_F(ViewTest, PrintsAPlainPage) {
  Frame frame;
  frame.width = 160;
  frame.host = "node17";
  EXPECT_EQ(
      text_of(plain_page(snapshot_, frame, Sort::state)),
      "gpumeter 1.2.3  node17  3 GPUs  1 failed  1 degraded  1 ok  461 W\n"
      "3 x NVIDIA H100 80GB\n"
      "\n"
      "GPU STATE    MODEL     UTIL                          POWER W   MEM GiB TEMP MARGIN THROTTLE HELD BY\n"
      "  2 failed   H100 80GB    -                                -         -    -      - -        -\n"
      "  1 degraded H100 80GB   0%                          100/450 40.0/80.0   88      2 thermal  -\n"
      "  0 ok       H100 80GB  87% |||||||||||||||||||||    361/450 40.0/80.0   65     25 power    llama "
      "(alice)\n"
      "\n"
      "GPU 2: failed\n"
      "failed       The GPU is lost\n"
      "             do: reboot  reason device_lost  for 12s  alert GpuLost\n"
      "\n"
      "GPU 1: degraded\n"
      "degraded     Slowed down by heat\n"
      "             reason thermal_throttling  for 1m15s  alert GpuThermalThrottling\n"
      "\n"
      "RUN              USER   STATE     STEP  STEP/S   LOSS PHASE               TIME   ENERGY GPUS\n"
      "llama            alice  running   1200       -   2.46 -                  5m00s        - 0\n");
}

TEST_F(ViewTest, AMachineWithoutGpus) {
  snapshot_ = {};
  EXPECT_NE(screen().find("The daemon has no GPU."), std::string::npos);
  key(Key::down);
  key(Key::enter);
  EXPECT_EQ(view_.page, View::Page::gpus);
}

}  // namespace
}  // namespace gpumeter::top
