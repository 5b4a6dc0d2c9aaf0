#include "collectors/attribution/device_workloads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "daemon/lane/device_session.hpp"
#include "exporter/health/report.hpp"
#include "exporter/text/view.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_procfs.hpp"
#include "tests/fakes/listing_device.hpp"

namespace gpumeter::workloads {
namespace {

using Counters = std::vector<ClockLoss::Throttled>;

TEST(ClockLoss, IntegratesTheMissingClockOverThrottledTime) {
  ClockLoss loss;
  loss.pass(Counters{{"power", 10}, {"thermal", 5}}, 1000, 2000);
  EXPECT_EQ(loss.seconds(), 0) << "the past is not known";
  loss.pass(Counters{{"power", 12}, {"thermal", 6}}, 1500, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "a quarter of 2 s; causes at the same time count once";
  loss.pass(Counters{{"power", 12}, {"thermal", 6}}, 300, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "idle, not throttled";
  loss.pass(Counters{{"power", 13}, {"thermal", 6}}, 2100, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "above the maximum is no gain";
}

TEST(ClockLoss, CountsNoTimeWithoutReadings) {
  ClockLoss loss;
  loss.pass(Counters{}, 1000, 2000);
  loss.pass(Counters{{"power", 1}}, {}, 2000);
  loss.pass(Counters{{"power", 2}}, 1000, 0);
  EXPECT_EQ(loss.seconds(), std::nullopt);
  loss.pass(Counters{{"power", 3}}, 1000, 2000);
  EXPECT_EQ(loss.seconds(), 0.5);
  loss.interrupt();
  loss.pass(Counters{{"power", 60}}, 1000, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "the device was away";
}

}  // namespace

}  // namespace gpumeter::workloads

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

/// A session over a listing device. Shows the page without the daemon's own series of a device.
class DeviceWorkloadsTest : public testing::Test {
 protected:
  void open(bool processes = false) {
    settings_.procfs = procfs_.path();
    settings_.processes = processes;
    settings_.user_name = [](std::uint32_t uid) { return "user" + std::to_string(uid); };
    DeviceIdentity identity{"fake", 3, {}, ""};
    identity.info.uuid = "A";
    identity.info.vendor = "fake";
    session_ = std::make_unique<DeviceSession>(std::make_unique<ScriptedListing>(script_), identity,
                                               DeviceLabels{}, store_, clock_, settings_);
    ASSERT_TRUE(session_->attach(identity.info));
  }
  PassOutcome pass(Tier tier = Tier::fast) {
    clock_.advance(1s);
    return session_->run(tier, {}, nullptr);
  }
  /// The sample lines of gpu_energy, gpu_workload and gpu_process.
  std::string lines(const Filter& filter = {}) const {
    std::string kept;
    std::istringstream page(TextView(*store_).render(Format::text, filter).text);
    for (std::string line; std::getline(page, line);) {
      const bool ours = line.starts_with("gpu_energy") || line.starts_with("gpu_workload") ||
                        line.starts_with("gpu_process");
      if (ours) kept += line + "\n";
    }
    return kept;
  }
  static std::string energy(const char* value) {
    return std::string("gpu_energy_joules_total{gpu=\"3\",uuid=\"A\",vendor=\"fake\"} ") + value + "\n";
  }
  static std::string line(const std::string& family, const std::string& labels, const char* value) {
    return "gpu_" + family + "{gpu=\"3\",uuid=\"A\"," + labels + "} " + value + "\n";
  }

  static constexpr const char* kNobody = R"(kind="unattributed",workload="unattributed")";
  static constexpr const char* kUnit = R"(kind="systemd_unit",workload="a.service")";

  FakeClock clock_;
  FakeProcfs procfs_;
  ListingScript script_;
  WorkloadSettings settings_{std::make_shared<workloads::WorkloadBook>()};
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
  std::unique_ptr<DeviceSession> session_;
};

TEST_F(DeviceWorkloadsTest, ShowsWhoUsesTheDevice) {
  procfs_.add(7, "/system.slice/a.service", {.uid = 5});
  script_ = {.energy = 100, .processes = {{7, 4096, 0.5}}};
  open();
  EXPECT_EQ(pass(Tier::once), PassOutcome::complete);
  EXPECT_EQ(lines(), "") << "shown from the first fast pass on";
  pass();
  script_.energy = 160;
  pass(Tier::normal);
  EXPECT_EQ(lines(), energy("160") + line("workload_busy_seconds_total", kUnit, "0.5") +
                         line("workload_energy_joules_total", kUnit, "60") +
                         line("workload_energy_joules_total", kNobody, "100") +
                         line("workload_memory_peak_bytes", kUnit, "4096") +
                         line("workload_memory_used_bytes", kUnit, "4096") +
                         line("workload_share_ratio", kUnit, "1") +
                         line("workload_share_ratio", kNobody, "0"));
  EXPECT_EQ(script_.lists, 1);
  EXPECT_EQ(lines({.collect = {}, .exclude = {"fake"}}), "");
}

TEST_F(DeviceWorkloadsTest, TheHighestMemoryStaysAfterTheProcess) {
  procfs_.add(7, "/system.slice/a.service");
  procfs_.add(8, "/system.slice/a.service");
  script_ = {.energy = 0, .processes = {{7, 1000, 0}, {8, 500, 0}}};
  open();
  pass();
  script_.processes = {{7, 200, 0}};
  pass();
  const std::string peak = line("workload_memory_peak_bytes", kUnit, "1500");
  EXPECT_NE(lines().find(peak + line("workload_memory_used_bytes", kUnit, "200")), std::string::npos)
      << lines();
  script_.processes = {};
  pass();
  EXPECT_NE(lines().find(peak + line("workload_share_ratio", kUnit, "0")), std::string::npos) << lines();
}

TEST_F(DeviceWorkloadsTest, ADeviceThatNobodyUsesIsUnattributed) {
  script_.energy = 100;
  open();
  pass();
  EXPECT_EQ(lines(), energy("100") + line("workload_energy_joules_total", kNobody, "100") +
                         line("workload_share_ratio", kNobody, "1"));
}

TEST_F(DeviceWorkloadsTest, GoesOnWithWhatItKnewWhereTheDriverDoesNotTell) {
  script_.status = ReadStatus::denied;
  open();
  pass();
  EXPECT_EQ(lines(), energy("0")) << "nothing was ever known";
  EXPECT_TRUE(settings_.book->uses().empty());
  procfs_.add(7, "/system.slice/a.service");
  script_ = {.energy = 10, .processes = {{7, std::nullopt, 0.5}}};
  pass();
  script_ = {.energy = 20, .status = ReadStatus::failed};
  pass();
  EXPECT_NE(lines().find(line("workload_energy_joules_total", kUnit, "10")), std::string::npos) << lines();
}

TEST_F(DeviceWorkloadsTest, HasNoEnergyWhereTheDeviceShowsNone) {
  script_.has_energy = false;
  open();
  pass();
  EXPECT_EQ(lines(), line("workload_share_ratio", kNobody, "1"));
}

TEST_F(DeviceWorkloadsTest, NobodyIsOnADeviceThatSleepsAndItIsNotAsked) {
  procfs_.add(7, "/system.slice/a.service");
  script_.processes = {{7, 4096, std::nullopt}};
  open();
  pass();
  script_.outcome = PassOutcome::asleep;
  pass();
  EXPECT_EQ(script_.lists, 1);
  EXPECT_NE(lines().find(line("workload_share_ratio", kNobody, "1")), std::string::npos) << lines();
}

TEST_F(DeviceWorkloadsTest, AWorkloadThatBeginsIsLookedForAtOnceAndAgain) {
  procfs_.add(7, "/system.slice/a.service");
  settings_.lists = std::make_shared<workloads::ListRequest>();
  settings_.lists->note(clock_.monotonic());
  script_.tier = Tier::normal;
  open();
  pass();
  EXPECT_EQ(script_.lists, 0) << "nothing is known yet";
  pass(Tier::normal);
  pass();
  pass();
  EXPECT_EQ(script_.lists, 2) << "3 s after the request";
  pass();
  EXPECT_EQ(script_.lists, 2);
  settings_.lists->note(clock_.monotonic());
  script_.energy = 50;
  script_.processes = {{7, 4096, 0.5}};
  std::string looked;
  for (int i = 0; i < 5; ++i) {
    const int before = script_.lists;
    pass();
    looked += script_.lists > before ? "yes " : "no ";
  }
  EXPECT_EQ(looked, "yes no yes no no ") << "the list at 1 s is the first";
  EXPECT_EQ(script_.elapsed, 2s) << "since the last list";
  EXPECT_NE(lines().find(line("workload_energy_joules_total", kUnit, "0")), std::string::npos)
      << "the counter starts at 0: " << lines();
  script_.energy = 80;
  pass(Tier::normal);
  EXPECT_EQ(script_.elapsed, 3s);
  EXPECT_NE(lines().find(line("workload_energy_joules_total", kUnit, "30")), std::string::npos) << lines();
}

// FakeClock begins at 1767225600; the first list is at its second 1, the job begins at second 3.
TEST_F(DeviceWorkloadsTest, TheCountersOfAWorkloadHaveTheTimeOfTheirBegin) {
  procfs_.add(7, "/system.slice/a.service");
  settings_.clock = &clock_;
  script_.energy = 100;
  open();
  pass();
  pass();
  script_ = {.energy = 110, .processes = {{7, 4096, 0.5}}};
  pass();
  script_ = {.energy = 170, .processes = {{7, 4096, 0.5}}};
  pass();
  const auto created = [&](const std::string& family, const char* labels) {
    const std::string page = TextView(*store_).render(Format::openmetrics).text;
    const std::string start = "gpu_workload_" + family + "_created{gpu=\"3\",uuid=\"A\"," + labels + "} ";
    const std::size_t at = page.find(start);
    if (at == std::string::npos) return std::string("none");
    const std::size_t value = at + start.size();
    return page.substr(value, page.find('\n', value) - value);
  };
  EXPECT_EQ(created("energy_joules", kUnit), "1.767225603e+09");
  EXPECT_EQ(created("busy_seconds", kUnit), "1.767225603e+09");
  EXPECT_EQ(created("energy_joules", kNobody), "none") << "it begins with the device's energy";
  EXPECT_EQ(created("memory_peak_bytes", kUnit), "none") << "a gauge";
}

TEST_F(DeviceWorkloadsTest, ARestartedDaemonKeepsTheBeginOfAWorkload) {
  procfs_.add(7, "/system.slice/a.service");
  settings_.clock = &clock_;
  settings_.costs = std::make_shared<workloads::CostLedger>(clock_);
  script_ = {.energy = 100, .processes = {{7, 4096, 0.5}}};
  open();
  pass();
  const std::string saved = settings_.costs->save(*settings_.book);
  session_.reset();
  settings_.book = std::make_shared<workloads::WorkloadBook>();
  settings_.costs = std::make_shared<workloads::CostLedger>(clock_);
  ASSERT_TRUE(settings_.costs->load(saved, clock_.realtime(), true));
  clock_.advance(20s);
  open();
  pass();
  EXPECT_NE(TextView(*store_)
                .render(Format::openmetrics)
                .text.find("gpu_workload_busy_seconds_created{gpu=\"3\",uuid=\"A\"," + std::string(kUnit) +
                           "} 1.767225601e+09\n"),
            std::string::npos);
}

TEST_F(DeviceWorkloadsTest, AnInterruptedPassAsksNobody) {
  script_.outcome = PassOutcome::interrupted;
  open();
  pass();
  EXPECT_EQ(script_.lists, 0);
}

TEST_F(DeviceWorkloadsTest, LeavesThePageWithALostDevice) {
  procfs_.add(7, "/system.slice/a.service");
  script_ = {.energy = 10, .processes = {{7, std::nullopt, 0.5}}};
  open();
  pass();
  session_->lose();
  EXPECT_EQ(lines(), "");
  EXPECT_TRUE(settings_.book->uses().empty());
  script_.energy = 30;
  ASSERT_TRUE(session_->attach(session_->identity().info));
  pass(Tier::once);
  EXPECT_EQ(lines(), "");
  pass();
  EXPECT_EQ(lines(), energy("30") + line("workload_busy_seconds_total", kUnit, "1") +
                         line("workload_energy_joules_total", kUnit, "0") +
                         line("workload_energy_joules_total", kNobody, "30") +
                         line("workload_share_ratio", kUnit, "1") +
                         line("workload_share_ratio", kNobody, "0"));
}

TEST_F(DeviceWorkloadsTest, ShowsProcessesWhereAsked) {
  procfs_.add(7, "/system.slice/a.service", {.uid = 5, .name = "tr\"a\xffin"});
  procfs_.add(8, "/system.slice/a.service");
  script_.processes = {{7, 1000, 0.5}, {8, 2000, std::nullopt}};
  open(true);
  pass();
  const std::string seven = "pid=\"7\",name=\"tr\\\"a\uFFFDin\",user=\"user5\"";
  const std::string eight = R"(pid="8",name="train",user="user0")";
  EXPECT_TRUE(lines().starts_with(energy("0") + line("process_busy_seconds_total", seven, "0.5") +
                                  line("process_memory_used_bytes", seven, "1000") +
                                  line("process_memory_used_bytes", eight, "2000")))
      << lines();
  script_.processes = {{7, std::nullopt, 0.25}, {8, 3000, std::nullopt}};
  pass();
  EXPECT_TRUE(lines().starts_with(energy("0") + line("process_busy_seconds_total", seven, "0.75") +
                                  line("process_memory_used_bytes", eight, "3000")))
      << lines();
  script_.processes = {};
  pass();
  EXPECT_EQ(lines().find("gpu_process"), std::string::npos);
}

TEST_F(DeviceWorkloadsTest, TellsTheJobsWhoUsedTheDevice) {
  procfs_.add(7, "/system.slice/a.service", {.uid = 5});
  script_ = {.energy = 10, .processes = {{7, std::nullopt, 0.5}}};
  open();
  pass();
  script_.energy = 14;
  pass(Tier::normal);
  ASSERT_EQ(settings_.book->uses().size(), 1U);
  const workloads::DeviceUse& use = *settings_.book->uses().front();
  EXPECT_EQ(use.uuid, "A");
  EXPECT_EQ(use.index, 3U);
  EXPECT_EQ(use.at, clock_.monotonic());
  EXPECT_TRUE(use.has_energy);
  EXPECT_EQ(use.busy_seconds, std::nullopt);
  ASSERT_EQ(use.processes.size(), 1U);
  EXPECT_EQ(use.processes[0].id, (workloads::ProcessId{7, 100}));
  EXPECT_EQ(use.processes[0].uid, 5U);
  EXPECT_EQ(use.processes[0].group, "/system.slice/a.service");
  EXPECT_EQ(use.processes[0].energy_joules, 4);
  EXPECT_EQ(use.processes[0].busy_seconds, 0.5);
  session_.reset();
  EXPECT_TRUE(settings_.book->uses().empty());
  EXPECT_TRUE(settings_.book->workloads().empty());
}

TEST_F(DeviceWorkloadsTest, TheInfoOfAllDevicesIsPublishedWhereItChanged) {
  procfs_.add(7, "/system.slice/a.service", {.uid = 5});
  procfs_.add(8, "/system.slice/b.service");
  script_.processes = {{7, 1, std::nullopt}};
  open();
  pass();
  Machine machine;
  machine.workloads = std::make_shared<const WorkloadSettings>(settings_);
  Log log(clock_, {});
  const Paths paths;
  const auto info = workloads::kInfo.open({"workloads", *store_, machine, clock_, log, paths});
  info->turn(10s);
  const auto shown = [&](const std::string& labels) {
    return lines({.collect = {}, .exclude = {"fake"}}).find("gpu_workload_info{" + labels + "} 1\n") !=
           std::string::npos;
  };
  const std::string unit = std::string(kUnit) + R"(,unit="a.service",user="user5",source="process")";
  EXPECT_TRUE(shown(unit)) << lines();
  EXPECT_TRUE(shown(std::string(kNobody) + R"(,source="process")"));
  script_.processes.push_back({8, std::nullopt, std::nullopt});
  pass();
  info->turn(11s);
  EXPECT_TRUE(
      shown(R"(kind="systemd_unit",workload="b.service",unit="b.service",user="user0",source="equal")"));
  const std::uint64_t after = store_->generation();
  info->turn(70s);
  EXPECT_EQ(store_->generation(), after) << "nothing changed";
  info->turn(71s);
  EXPECT_GT(store_->generation(), after) << "a name may be known by now";
}

/// What `workloads.environment` asks for, and the labels that gpu_workload_info has of it.
class EnvironmentTest : public DeviceWorkloadsTest {
 protected:
  void open() {
    settings_.environment = {"WANDB_NAME", "Project"};
    DeviceWorkloadsTest::open();
    machine_.workloads = std::make_shared<const WorkloadSettings>(settings_);
    environment_ = workloads::kEnvironment.open({"environment", *store_, machine_, clock_, log_, paths_});
    info_ = workloads::kInfo.open({"workloads", *store_, machine_, clock_, log_, paths_});
  }
  /// A group with one process on the device.
  void run(int pid, const FakeProcfs::Facts& facts = {}) {
    procfs_.add(pid, "/system.slice/a.service", facts);
    script_.processes = {{pid, 1, std::nullopt}};
  }
  /// The labels env_* of a.service after a list of processes and a turn of both parts.
  std::string labels() {
    pass();
    environment_->turn(clock_.monotonic());
    info_->turn(clock_.monotonic());
    const std::string page = lines();
    const std::size_t line = page.find(std::string("gpu_workload_info{") + kUnit);
    if (line == std::string::npos) return "no workload";
    const std::string text = page.substr(line, page.find("\n", line) - line);
    const std::size_t first = text.find("env_");
    return first == std::string::npos ? "" : text.substr(first, text.rfind('}') - first);
  }

  Machine machine_;
  Log log_{clock_, {}};
  const Paths paths_;
  std::shared_ptr<Part> environment_;
  std::shared_ptr<Part> info_;
};

TEST_F(EnvironmentTest, ChosenVariablesAreLabelsOfTheInfo) {
  using namespace std::string_view_literals;
  run(7);
  procfs_.set_environment(7,
                          "WANDB_NAME_=x\0HOME=/\0WANDB_NAME=night run\0WANDB_NAME=later\0Project=a=b\0"sv);
  open();
  EXPECT_EQ(labels(), R"(env_project="a=b",env_wandb_name="night run")");
}

TEST_F(EnvironmentTest, AVariableThatIsNotSetHasNoLabel) {
  using namespace std::string_view_literals;
  run(7);
  procfs_.set_environment(7, "HOME=/\0WANDB_NAME=\0Project\0"sv);
  open();
  EXPECT_EQ(labels(), "");
}

TEST_F(EnvironmentTest, TheFirstProcessDecidesAlsoAfterItsEnd) {
  using namespace std::string_view_literals;
  procfs_.add(6, "/system.slice/a.service", {.start = 200});
  procfs_.set_environment(6, "WANDB_NAME=second\0"sv);
  procfs_.add(7, "/system.slice/a.service", {.start = 150});
  procfs_.set_environment(7, "WANDB_NAME=first\0"sv);
  script_.processes = {{6, 1, std::nullopt}, {7, 1, std::nullopt}};
  open();
  EXPECT_EQ(labels(), R"(env_wandb_name="first")") << "it began first";
  procfs_.set_environment(7, "WANDB_NAME=renamed\0"sv);
  EXPECT_EQ(labels(), R"(env_wandb_name="first")");
  procfs_.end(7);
  script_.processes = {{6, 1, std::nullopt}};
  EXPECT_EQ(labels(), R"(env_wandb_name="first")");
}

TEST_F(EnvironmentTest, AProcessWithoutMemoryIsNotTheFirst) {
  using namespace std::string_view_literals;
  run(7);
  procfs_.set_environment(7, "");
  open();
  EXPECT_EQ(labels(), "") << "it ends, or is a thread of the kernel";
  run(8, {.start = 300});
  procfs_.set_environment(8, "WANDB_NAME=next\0"sv);
  EXPECT_EQ(labels(), R"(env_wandb_name="next")");
}

TEST_F(EnvironmentTest, AnotherProcessOfTheSameNumberIsNotBelieved) {
  using namespace std::string_view_literals;
  run(7);
  open();
  pass();
  procfs_.add(7, "/system.slice/b.service", {.start = 500});
  procfs_.set_environment(7, "WANDB_NAME=of b\0"sv);
  environment_->turn(clock_.monotonic());
  procfs_.add(7, "/system.slice/a.service", {.start = 100});
  EXPECT_EQ(labels(), "");
}

TEST_F(EnvironmentTest, BytesOfAnAttackerAreOneLabelOfBoundedLength) {
  using namespace std::string_view_literals;
  run(7);
  std::string variables("WANDB_NAME=a\"b\\c\nd\xff\0"sv);
  for (int i = 0; i < 30'000; ++i) variables += "WANDB_NAME=more\0"sv;
  variables += "Project=beyond 256 KiB\0"sv;
  procfs_.set_environment(7, variables);
  open();
  EXPECT_EQ(labels(),
            "env_wandb_name=\"a\\\"b\\\\c\xef\xbf\xbd"
            "d\xef\xbf\xbd\"");
}

TEST_F(EnvironmentTest, AVariableThatTheLimitCutsHasNoLabel) {
  run(7);
  procfs_.set_environment(7, "Project=" + std::string(std::size_t{300} << 10U, 'x'));
  open();
  EXPECT_EQ(labels(), "");
}

TEST_F(EnvironmentTest, ARefusalIsReportedOnce) {
  run(7);
  open();
  testing::internal::CaptureStderr();
  std::filesystem::create_directory(procfs_.path() + "/7/environ");  // EISDIR, for root too
  EXPECT_EQ(labels(), "");
  run(8);
  std::filesystem::create_directory(procfs_.path() + "/8/environ");
  EXPECT_EQ(labels(), "");
  ASSERT_TRUE(log_.flush(5s));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("the environment of a process cannot be read"), std::string::npos);
  EXPECT_EQ(log.find("cannot be read"), log.rfind("cannot be read"));
}

TEST(EnvironmentOption, NamesVariablesThatHoldNoSecret) {
  const auto option = std::ranges::find(kWorkloadSection.options, "environment", &options::Option::name);
  const auto problem = [&](const std::vector<std::string>& names) {
    const auto wrong = option->check(&names);
    return wrong ? wrong->text : "";
  };
  EXPECT_EQ(problem({"WANDB_NAME", "_project2", "TOKENIZERS_PARALLELISM"}), "");
  for (const char* wrong : {"A-B", "2A", ""}) {
    EXPECT_EQ(problem({wrong}), "must have names of environment variables, such as WANDB_NAME, not \"" +
                                    std::string(wrong) + "\"");
  }
  for (const char* secret : {"WANDB_API_KEY", "HF_TOKEN", "PGPASSWORD", "aws_secret_access"}) {
    EXPECT_EQ(problem({secret}), "must not have \"" + std::string(secret) +
                                     "\": by its name the value is a secret, and everyone can read the page");
  }
  EXPECT_EQ(problem({"Name", "NAME"}),
            "must not have both \"Name\" and \"NAME\": both are exported as env_name");
  EXPECT_EQ(problem(std::vector<std::string>(17, "A")), "must have at most 16 variables");
}

TEST_F(DeviceWorkloadsTest, IsNotThereWhereItIsNotWanted) {
  settings_.book = nullptr;
  open();
  pass();
  EXPECT_EQ(lines(), energy("0"));
  EXPECT_EQ(script_.lists, 0);
}

}  // namespace

}  // namespace gpumeter
