#include "programs/service/service.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "collectors/jobs/join/facts_json.hpp"
#include "exporter/health/report.hpp"

namespace gpumeter::service {
namespace {

constexpr const char* kProcesses =
    "{\"processes\":[\n"
    "{\"pid\":10,\"start_ticks\":5,\"uid\":1000,\"owner\":\"u1000\",\"group\":\"/system.slice/"
    "a\\\\x2db.service\","
    "\"kind\":\"systemd_unit\",\"workload\":\"a-b.service\",\"user\":\"alice\",\"run\":\"train\",\"devices\":"
    "["
    "{\"uuid\":\"GPU-1\",\"gpu\":0,\"present\":true,\"joules\":12.5,\"busy_seconds\":0.25},"
    "{\"uuid\":\"GPU-2\",\"gpu\":1,\"present\":true,\"joules\":null,\"busy_seconds\":null}]},\n"
    "{\"pid\":11,\"start_ticks\":6,\"uid\":null,\"owner\":null,\"group\":null,\"kind\":null,\"workload\":"
    "null,"
    "\"user\":null,\"run\":null,\"devices\":["
    "{\"uuid\":\"GPU-1\",\"gpu\":0,\"present\":false,\"joules\":2,\"busy_seconds\":null}]}\n"
    "]}\n";

constexpr const char* kRuns =
    "{\"runs\":[\n"
    "{\"user\":\"alice\",\"run\":\"train\",\"state\":\"running\"},\n"
    "{\"user\":\"bob\",\"run\":\"old\",\"state\":\"ended\"}\n"
    "],\"processes\":[\n"
    "{\"pid\":10,\"start_ticks\":5,\"uid\":1000,\"user\":\"alice\",\"run\":\"train\"}\n"
    "]}\n";

std::string owner(std::uint32_t uid) { return "u" + std::to_string(uid); }

TEST(Facts, ArriveInAProgramAsThePartsOfTheDaemonHaveThem) {
  workloads::DeviceUse one{.uuid = "GPU-1", .index = 0, .has_energy = true};
  one.processes = {{{10, 5}, 1000, "/system.slice/a\\x2db.service", true, 12.5, 0.25},
                   {{11, 6}, std::nullopt, "", false, 2, std::nullopt}};
  workloads::DeviceUse two{.uuid = "GPU-2", .index = 1};
  two.processes = {{{10, 5}, 1000, "/system.slice/a\\x2db.service", true, 0, std::nullopt}};
  jobs::RunList runs;
  runs.runs = {{"alice", "train"}, {"bob", "old"}};
  runs.ended = {{"bob", "old"}};
  runs.processes = {{{1000, 10, 5}, {"alice", "train"}}};
  runs.on_devices = {{{10, 5}, {"alice", "train"}}};
  const auto share = [](const auto& use) { return std::make_shared<const workloads::DeviceUse>(use); };
  const std::string processes = jobs::processes_json({share(one), share(two)}, runs, owner);
  EXPECT_EQ(processes, kProcesses);
  EXPECT_EQ(jobs::runs_json(runs), kRuns);

  Machine machine;
  ASSERT_TRUE(take_processes(processes, machine));
  ASSERT_TRUE(take_runs(jobs::runs_json(runs), machine));
  EXPECT_EQ(jobs::processes_json(*machine.uses.get(), *machine.runs.get(), owner), processes);
  EXPECT_EQ(jobs::runs_json(*machine.runs.get()), jobs::runs_json(runs));
}

TEST(Facts, StayIfAnAnswerIsNotUnderstood) {
  Machine machine;
  ASSERT_TRUE(take_processes(kProcesses, machine));
  ASSERT_TRUE(take_runs(kRuns, machine));
  for (const std::string bad : {"", "<html>", "[]", "{\"processes\":[{\"pid\":\"x\"}]}", "{\"runs\":[]}"}) {
    EXPECT_FALSE(take_processes(bad, machine)) << bad;
    EXPECT_FALSE(take_runs(bad, machine)) << bad;
  }
  EXPECT_EQ(jobs::processes_json(*machine.uses.get(), *machine.runs.get(), owner), kProcesses);
  EXPECT_EQ(jobs::runs_json(*machine.runs.get()), kRuns);
}

}  // namespace
}  // namespace gpumeter::service
