#include "programs/servers/part.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <memory>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/view.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::servers {
namespace {

constexpr std::uint32_t kAlice = 1000;
constexpr const char* kVllm =
    "vllm:prompt_tokens_total{model_name=\"m\"} 30\nvllm:generation_tokens_total{model_name=\"m\"} 12\n";
constexpr const char* kSession = "/user.slice/user-1000.slice/session-2.scope";

/// A machine with processes, listening sockets and pages. A test changes it between two updates.
class WatchTest : public testing::Test {
 protected:
  void process(int pid, int parent, const std::string& group, const std::string& words) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    tree_.write(folder + "stat", std::to_string(pid) + " (x) S " + std::to_string(parent) + " 1");
    tree_.write(folder + "cgroup", "0::" + group + "\n");
    tree_.write(folder + "comm", "python3\n");
    tree_.write(folder + "cmdline", words);
    groups_[pid] = group;
    const std::string procs = "sys/fs/cgroup" + group + "/cgroup.procs";
    members_[group] += std::to_string(pid) + "\n";
    tree_.write(procs, members_[group]);
  }
  /// The process listens, and its folder fd is readable.
  void listens(int pid, std::uint16_t port, const std::string& address = "127.0.0.1") {
    const std::uint64_t inode = 7000 + port;
    tree_.write("proc/" + std::to_string(pid) + "/fd/" + std::to_string(port),
                "-> socket:[" + std::to_string(inode) + "]");
    listeners_.push_back({port, address, inode, kAlice, cgroup_id(groups_.at(pid))});
  }
  /// The process listens, and its folder fd belongs to another user.
  void listens_hidden(int pid, std::uint16_t port, std::uint32_t uid = kAlice) {
    listeners_.push_back({port, "127.0.0.1", 7000U + port, uid, cgroup_id(groups_.at(pid))});
  }
  void on_gpu(int pid, double joules, const std::string& uuid = "GPU-A", unsigned index = 0) {
    workloads::DeviceUse& device = devices_[uuid];
    device.uuid = uuid;
    device.index = index;
    device.has_energy = true;
    workloads::ProcessUse use;
    use.id = {pid, 5};
    use.uid = kAlice;
    use.group = groups_.at(pid);
    use.present = true;
    use.energy_joules = joules;
    device.processes.push_back(use);
  }
  double& joules(const std::string& uuid = "GPU-A", std::size_t at = 0) {
    return devices_[uuid].processes[at].energy_joules;
  }
  static Settings find(std::vector<options::Port> ports, std::vector<std::string> processes = {}) {
    return {true, std::move(ports), std::move(processes), {}};
  }
  void open(std::optional<Settings> find, const std::vector<std::string>& targets = {}) {
    Settings settings = find.value_or(Settings());
    for (const std::string& text : targets) settings.targets.push_back(*parse_target(text));
    Outside outside;
    outside.fetch = [this](const Target& target) -> Result<std::string> {
      const std::string url = target.host + ":" + target.port + target.path;
      asked_ += url + "\n";
      const auto page = pages_.find(url);
      return page == pages_.end() ? Error("connection refused") : Result<std::string>(page->second);
    };
    outside.say = [this](const Notice& notice) {
      said_ += notice.message + "|" + notice.server + "|" + notice.error + "\n";
    };
    outside.listeners = [this](const std::string&) -> Result<std::vector<tcp::Listener>> {
      return listeners_;
    };
    PartContext context{"servers", store_, machine_, clock_, log_, paths_};
    context.settings = &settings;
    watch_ = make_part(context, std::move(outside));
  }
  /// The page after an update, without comments.
  std::string update() {
    asked_.clear();
    now_ += std::chrono::seconds(10);
    std::vector<std::shared_ptr<const workloads::DeviceUse>> uses;
    for (const auto& [uuid, device] : devices_)
      uses.push_back(std::make_shared<workloads::DeviceUse>(device));
    machine_.uses.publish(std::move(uses));
    watch_->turn(now_);
    std::string kept;
    std::istringstream page(TextView(store_).render(Format::text, {}).text);
    for (std::string line; std::getline(page, line);) {
      if (!line.starts_with('#')) kept += line + "\n";
    }
    return kept;
  }

  Tree tree_ = make_tree({});
  std::map<int, std::string> groups_;
  std::map<std::string, std::string> members_;
  std::map<std::string, workloads::DeviceUse> devices_;
  std::vector<tcp::Listener> listeners_;
  std::map<std::string, std::string> pages_;
  std::string asked_, said_;
  const SystemClock clock_;
  Log log_{clock_, {}};
  const Paths paths_{.sysfs = tree_ / "sys", .procfs = tree_ / "proc"};
  Machine machine_;
  Store store_;
  std::shared_ptr<Part> watch_;

 private:
  std::uint64_t cgroup_id(const std::string& group) const {
    struct stat folder {};
    return stat((tree_ / ("sys/fs/cgroup" + group)).c_str(), &folder) == 0 ? folder.st_ino : 0;
  }
  Nanoseconds now_{};
};

TEST_F(WatchTest, GivesAServerTheGpusAndTheEnergyOfItsWorkers) {
  process(10, 1, kSession, std::string("python3\0/usr/bin/vllm\0serve", 27));
  process(11, 10, kSession, "VLLM::EngineCore");
  process(12, 1, kSession, "train");
  listens(10, 8000);
  on_gpu(11, 500);
  on_gpu(12, 70);
  on_gpu(11, 10, "GPU-B", 1);
  pages_["127.0.0.1:8000/metrics"] = kVllm;
  open(find({{8000}}));
  const std::string facts =
      R"(ml_server_info{server="vllm",port="8000",model="m",kind="session",workload="user-1000.slice",)";
  const std::string page = update();
  EXPECT_NE(page.find("ml_server_energy_joules_total{server=\"vllm\",port=\"8000\"} 0\n"), std::string::npos)
      << page;
  joules() = 600;
  joules("GPU-A", 1) = 9999;  // the training job of the same session
  joules("GPU-B") = 35;
  EXPECT_EQ(update(), "ml_server_energy_joules_total{server=\"vllm\",port=\"8000\"} 125\n" + facts +
                          "gpu=\"0\",uuid=\"GPU-A\"} 1\n" + facts +
                          "gpu=\"1\",uuid=\"GPU-B\"} 1\n"
                          "ml_server_tokens_total{server=\"vllm\",port=\"8000\",kind=\"input\"} 30\n"
                          "ml_server_tokens_total{server=\"vllm\",port=\"8000\",kind=\"output\"} 12\n"
                          "ml_server_up{server=\"vllm\",port=\"8000\"} 1\n");
  devices_["GPU-A"].processes[0].present = false;  // it ended with its last joules
  joules() = 610;
  EXPECT_NE(update().find("ml_server_energy_joules_total{server=\"vllm\",port=\"8000\"} 135\n"),
            std::string::npos);
}

TEST_F(WatchTest, GivesARouterTheWorkersOfItsContainer) {
  const std::string container = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
  process(10, 1, container, "text-generation-launcher");
  process(11, 10, container, "text-generation-router");
  process(12, 10, container, "python3");
  listens(11, 3000);
  on_gpu(12, 5);
  pages_["127.0.0.1:3000/metrics"] = "tgi_queue_size 3\n";
  open(find({{3000}}));
  const std::string facts = R"(ml_server_info{server="tgi",port="3000",kind="container",workload=")" +
                            std::string(64, 'a') + R"(",gpu="0",uuid="GPU-A"} 1)";
  EXPECT_NE(update().find(facts), std::string::npos) << update();
}

TEST_F(WatchTest, ReadsOnlyWantedPortsOfProcessesOnAGpuOnLoopback) {
  process(10, 1, "/system.slice/a.service", "nginx");
  process(11, 1, "/system.slice/vllm.service", "vllm");
  on_gpu(11, 0);
  listens(10, 8000);
  listens(11, 8001);
  listens(11, 8080, "");
  open(find({{8000}, {8080}}));
  EXPECT_EQ(update(), "");
  EXPECT_EQ(asked_, "");
}

TEST_F(WatchTest, ReadsOnlyProcessesOfTheWantedNames) {
  process(10, 1, "/system.slice/a.service", std::string("/opt/python3\0-m\0sglang.launch_server", 36));
  process(11, 1, "/system.slice/b.service", "notebook");
  on_gpu(10, 0);
  on_gpu(11, 0);
  listens(10, 30000);
  listens(11, 8000);
  open(find({{8000}, {30000}}, {"sglang.launch_server"}));
  update();
  EXPECT_EQ(asked_, "127.0.0.1:30000/metrics\n");
  open(find({{8000}, {30000}}, {"python3"}));
  update();
  EXPECT_EQ(asked_, "127.0.0.1:30000/metrics\n127.0.0.1:8000/metrics\n") << "the name in comm";
}

TEST_F(WatchTest, WithoutTheRightToLookIntoAProcessItsCgroupDecides) {
  process(10, 1, "/system.slice/vllm.service", "vllm");
  process(11, 10, "/system.slice/vllm.service", "engine");
  process(20, 1, kSession, "vllm");
  on_gpu(11, 0);
  on_gpu(20, 0);
  listens_hidden(10, 8000);
  listens_hidden(20, 8001);
  listens_hidden(10, 8002, kAlice + 1);
  for (const char* const port : {"8000", "8001", "8002"}) {
    pages_[std::string("127.0.0.1:") + port + "/metrics"] = "vllm:num_requests_running 1\n";
  }
  open(find({{8000}, {8001}, {8002}}));
  update();
  joules() = 7;
  joules("GPU-A", 1) = 9;
  EXPECT_EQ(update(),
            R"(ml_server_energy_joules_total{server="vllm",port="8000"} 7
ml_server_info{server="vllm",port="8000",kind="systemd_unit",workload="vllm.service",gpu="0",uuid="GPU-A"} 1
ml_server_info{server="vllm",port="8001",kind="session",workload="user-1000.slice"} 1
ml_server_requests_running{server="vllm",port="8000"} 1
ml_server_requests_running{server="vllm",port="8001"} 1
ml_server_up{server="vllm",port="8000"} 1
ml_server_up{server="vllm",port="8001"} 1
)") << "a session is no server's own; another user's socket is not read";
}

TEST_F(WatchTest, OmitsAllFiguresOfAServerThatDoesNotAnswer) {
  open({}, {"http://10.0.0.7:8000", "http://[::1]:9000/m"});
  EXPECT_EQ(update(), "ml_server_up{port=\"8000\",host=\"10.0.0.7\"} 0\nml_server_up{port=\"9000\"} 0\n");
  EXPECT_EQ(asked_, "10.0.0.7:8000/metrics\n::1:9000/m\n");
  pages_["10.0.0.7:8000/metrics"] = kVllm;
  pages_["::1:9000/m"] = "go_goroutines 7\n";
  EXPECT_EQ(update(),
            R"(ml_server_info{server="vllm",port="8000",host="10.0.0.7",model="m"} 1
ml_server_tokens_total{server="vllm",port="8000",host="10.0.0.7",kind="input"} 30
ml_server_tokens_total{server="vllm",port="8000",host="10.0.0.7",kind="output"} 12
ml_server_up{server="vllm",port="8000",host="10.0.0.7"} 1
ml_server_up{port="9000"} 0
)");
  pages_.clear();
  EXPECT_EQ(update(),
            R"(ml_server_info{server="vllm",port="8000",host="10.0.0.7",model="m"} 1
ml_server_up{server="vllm",port="8000",host="10.0.0.7"} 0
ml_server_up{port="9000"} 0
)");
  update();
  EXPECT_EQ(
      said_,
      "metrics page of a model server|http://10.0.0.7:8000|connection refused\n"
      "metrics page of a model server|http://[::1]:9000/m|connection refused\n"
      "metrics page of a model server|http://10.0.0.7:8000|\n"
      "metrics page of a model server|http://[::1]:9000/m|the page is not that of a known model server\n"
      "metrics page of a model server|http://10.0.0.7:8000|connection refused\n"
      "metrics page of a model server|http://[::1]:9000/m|connection refused\n")
      << "once per change";
}

TEST_F(WatchTest, ANewVersionWithOtherBoundsLeavesNoBucketBehind) {
  const auto page = [](const std::string& bound, int count) {
    const std::string name = "vllm:time_to_first_token_seconds_";
    const std::string n = std::to_string(count);
    return name + "bucket{le=\"" + bound + "\"} 1\n" + name + "bucket{le=\"+Inf\"} " + n + "\n" + name +
           "sum 0.5\n" + name + "count " + n + "\n";
  };
  open({}, {"http://127.0.0.1:8000"});
  pages_["127.0.0.1:8000/metrics"] = page("0.001", 9);
  update();
  pages_["127.0.0.1:8000/metrics"] = page("0.25", 2);
  EXPECT_EQ(update(),
            R"(ml_server_info{server="vllm",port="8000"} 1
ml_server_time_to_first_token_seconds_bucket{server="vllm",port="8000",le="0.25"} 1
ml_server_time_to_first_token_seconds_bucket{server="vllm",port="8000",le="+Inf"} 2
ml_server_time_to_first_token_seconds_sum{server="vllm",port="8000"} 0.5
ml_server_time_to_first_token_seconds_count{server="vllm",port="8000"} 2
ml_server_up{server="vllm",port="8000"} 1
)");
}

TEST_F(WatchTest, ANamedTargetOfThisMachineHasTheGpusOfItsListener) {
  process(10, 1, kSession, "llama-server");
  listens(10, 8080);
  on_gpu(10, 0);
  pages_["localhost:8080/metrics?model=a"] = "llamacpp:requests_processing 2\n";
  open(find({{8080}}), {"http://localhost:8080/metrics?model=a"});
  EXPECT_NE(update().find("kind=\"session\",workload=\"user-1000.slice\",gpu=\"0\",uuid=\"GPU-A\"} 1\n"),
            std::string::npos);
  EXPECT_EQ(asked_, "localhost:8080/metrics?model=a\n") << "one read, by the configured address";
}

TEST(ParseTarget, HasAPageByDefault) {
  const auto text_of = [](std::string_view text) {
    const Result<Target> target = parse_target(text);
    return target ? target->host + " " + target->port + " " + target->path : "wrong";
  };
  EXPECT_EQ(text_of("http://127.0.0.1:8000"), "127.0.0.1 8000 /metrics");
  EXPECT_EQ(text_of("http://127.0.0.1:8000/"), "127.0.0.1 8000 /metrics");
  EXPECT_EQ(text_of("https://[fd00::1]:1/a/b?c=d"), "fd00::1 1 /a/b?c=d");
  EXPECT_EQ(text_of("http://a b:1/"), "wrong");
}

}  // namespace
}  // namespace gpumeter::servers
