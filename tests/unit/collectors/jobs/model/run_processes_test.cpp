#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

/// The processes that are joined with GPUs: pid and run.
std::string processes(JobsBench& bench) {
  std::string text;
  bench.model.tick(bench.now);
  for (const RunProcess& process : bench.model.runs().processes) {
    text += std::to_string(process.id.pid) + " " + process.run.run + "\n";
  }
  return text;
}

TEST(RunProcesses, AreOfTheRunThatTheProcessIsAtNow) {
  JobsBench bench;
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.send(2, "_e{9,1}:run_start|a|#run:a");
  EXPECT_EQ(processes(bench), "1 a\n2 a\n");
  bench.send(1, "_e{8,7}:run_stop|success|#run:a");
  EXPECT_EQ(processes(bench), "2 a\n");
  bench.send(1, "_e{9,1}:run_start|b|#run:b");
  EXPECT_EQ(processes(bench), "2 a\n1 b\n");
}

// A notebook keeps its data loader's workers, which send no run_stop of their own.
TEST(RunProcesses, AreNotTheForksOfAProcessThatStopped) {
  JobsBench bench;
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.born(2, 0, {1});
  bench.send(2, "ml.phase.seconds:1|d|#run:a");
  EXPECT_EQ(processes(bench), "1 a\n2 a\n");
  bench.send(1, "_e{8,7}:run_stop|success|#run:a");
  EXPECT_EQ(processes(bench), "");
}

TEST(RunProcesses, EndedRunsAreNamed) {
  JobsBench bench;
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.send(2, "_e{9,1}:run_start|b|#run:b");
  bench.send(1, "_e{8,7}:run_stop|success|#run:a");
  bench.model.tick(bench.now);
  EXPECT_EQ(bench.model.runs().ended, (std::vector<RunName>{{"alice", "a"}}));
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.model.tick(bench.now);
  EXPECT_EQ(bench.model.runs().ended, std::vector<RunName>());
}

}  // namespace
}  // namespace gpumeter::jobs
