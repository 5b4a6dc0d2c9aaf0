#include "programs/benchmark/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"
#include "collectors/amd/kfd.hpp"
#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/nvidia/processes.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::benchmark {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measurement, quantity, kind, backend, value, deviation, runs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Fact, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, measurements, failures, notes, facts)

namespace {

using Json = nlohmann::json;

// An idle GPU's driver holds up to 2 % of the memory, and its clocks and voltages are those of a cool chip.
constexpr double kMostMemoryShare = 0.02;
constexpr double kMostCelsius = 60;
constexpr double kMostUtilization = 0.02;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", share * 100);
  return text;
}

/// Null if `object` is none or has no such field.
const Json& field(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

/// Control characters (C0, DEL, C1) do not reach the terminal.
std::string text(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_string() ? readable(value.get_ref<const std::string&>(), is_control) : std::string();
}

std::optional<double> number(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

bool is_true(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_boolean() && value.get<bool>();
}

/// The elements of a list; none if the field is no list.
template <class Take>
void each(const Json& object, const char* key, Take take) {
  const Json& list = field(object, key);
  if (!list.is_array()) return;
  for (const Json& element : list) take(element);
}

Gpu gpu_of(const Json& json) {
  Gpu gpu;
  gpu.index = text(json, "gpu");
  gpu.uuid = text(json, "uuid");
  gpu.vendor = text(json, "vendor");
  gpu.model = text(json, "model");
  gpu.pci_address = text(json, "pci_address");
  gpu.state = text(json, "state");
  gpu.is_up = is_true(json, "up");
  gpu.is_suspended = is_true(json, "suspended");
  const Json& values = field(json, "values");
  gpu.utilization = number(values, "utilization_ratio");
  gpu.memory_used = number(values, "memory_used_bytes");
  gpu.memory_size = number(json, "memory_size_bytes");
  gpu.temperature = number(values, "temperature_celsius");
  gpu.power_limit = number(values, "power_limit_watts");
  each(json, "utilization", [&](const Json& past) {
    if (past.is_number())
      gpu.highest_utilization = std::max(gpu.highest_utilization.value_or(0), past.get<double>());
  });
  each(json, "holders", [&](const Json& holder) {
    if (text(holder, "kind") != "unattributed")
      gpu.holders.push_back({text(holder, "kind"), text(holder, "workload")});
  });
  return gpu;
}

/// Adds a series of gpu_mode or gpu_info to its GPU.
void add(std::vector<Gpu>& gpus, const Json& series) {
  const Json& labels = field(series, "labels");
  const auto gpu = std::ranges::find(gpus, text(labels, "uuid"), &Gpu::uuid);
  if (gpu == gpus.end() || number(series, "value") != 1.0) return;
  const std::string mode = text(labels, "mode");
  const std::string state = text(labels, "state");
  if (text(series, "name") == "gpu_info") gpu->driver_version = text(labels, "driver_version");
  if (mode == "compute" && state != "default") gpu->is_exclusive = true;
  if (mode == "mig" && state == "enabled") gpu->is_divided = true;
}

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPause{50};
constexpr int kTries = 40;

Error problem(const std::string& path, int error) {
  return Error(path + ": " + std::generic_category().message(error));
}

/// Reading is enough for a lock, so every user may take it where the package created the file.
Result<Descriptor> open_or_create(const std::string& path) {
  constexpr mode_t kReadable = 0644;
  const PathOfFile at(path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (!folder) return folder.error();
  return folder->open_lock(at.name, kReadable);
}

/// The outcome as text, for the pipe between the two processes.
std::string to_text(const Outcome& outcome) {
  return Json(outcome).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// nullopt if the text is not complete.
std::optional<Outcome> from_text(std::string_view text) try {
  return Json::parse(text).get<Outcome>();
} catch (const Json::exception&) {
  return std::nullopt;
}

constexpr milliseconds kInterval{200};
/// A killed process that a driver keeps in the kernel is left behind after this.
constexpr milliseconds kLongestReap{5000};

/// The work's process. Its standard output belongs to the report, so what a driver prints goes to the errors.
[[noreturn]] void work_in_child(const std::function<Outcome()>& work, const Descriptor& pipe, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent ended before prctl()
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_IGN);  // a terminal sends it to both; the parent decides
  dup2(STDERR_FILENO, STDOUT_FILENO);
  std::string text;
  try {
    text = to_text(work());
  } catch (const std::exception& problem) {
    text = to_text({{}, {problem.what()}, {}, {}});
  }
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(pipe.number(), rest.data(), rest.size());
    if (written <= 0) _exit(1);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  _exit(0);  // without the drivers' destructors, some of which hang
}

/// Waits for the process's end; its status, or nullopt if a driver keeps it.
std::optional<int> reap(pid_t pid) {
  const auto end = SteadyClock::now() + kLongestReap;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (SteadyClock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return status;
}

/// Ends the process unless it has ended. The destructor does so too, so that none is left behind.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  std::optional<int> wait() {
    const std::optional<int> status = pid_ > 0 ? reap(pid_) : std::nullopt;
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
};

std::string how_it_ended(std::optional<int> status) {
  if (!status) return "the driver does not return";
  if (WIFSIGNALED(*status))
    return std::string("the driver ended the process: ") + strsignal(WTERMSIG(*status));
  return "the driver ended the process with status " + std::to_string(WEXITSTATUS(*status));
}

/// Appends what is in the pipe within the interval; false at its end.
bool receive(const Descriptor& pipe, std::string& text) {
  pollfd waiting{pipe.number(), POLLIN, 0};
  if (poll(&waiting, 1, static_cast<int>(kInterval.count())) <= 0) return true;
  std::array<char, 4096> piece{};
  const ssize_t size = read(pipe.number(), piece.data(), piece.size());
  if (size > 0) text.append(piece.data(), static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && errno == EINTR);
}

Supervised give_way(Child& child, std::string reason) {
  child.kill();
  return {End::gave_way, std::move(reason), {}};
}

std::string sentence(int pid) { return "process " + std::to_string(pid) + " uses the GPU"; }

/// What a look at NVML's lists needs.
class NvmlLists {
 public:
  NvmlLists(std::shared_ptr<nvidia::NvmlSession> session, nvidia::nvml::Device device)
      : caller_(std::move(session), device) {
    lists_.open(nvidia::driver_version(caller_));
  }

  std::optional<std::string> look(int own) {
    lists_.begin();
    const ReadStatus status = lists_.add(caller_);
    if (status != ReadStatus::ok) return "the driver's list of processes cannot be read";
    processes_.clear();
    lists_.append_to(processes_);
    const auto other =
        std::ranges::find_if(processes_, [&](const DeviceProcess& each) { return each.pid != own; });
    return other == processes_.end() ? std::nullopt : std::optional(sentence(other->pid));
  }

 private:
  nvidia::NvmlCaller caller_;
  nvidia::ProcessLists lists_;
  std::vector<DeviceProcess> processes_;
};

std::vector<std::uint32_t> kfd_numbers(const std::string& sysfs_root, const pci::Address& address) {
  std::vector<std::uint32_t> numbers;
  for (const amd::KfdNode& node : amd::kfd_nodes_of(amd::kfd_nodes(sysfs_root), {address, 0, std::nullopt}))
    numbers.push_back(node.gpu_id);
  return numbers;
}

bool holds_memory(const std::vector<amd::KfdUse>& uses) {
  return std::ranges::any_of(uses, [](const amd::KfdUse& use) { return use.vram_bytes.value_or(0) > 0; });
}

/// The driver's list of NVIDIA's GPUs: compute, graphics, MPS. Complete for every user, and up to date at
/// each call. Empty if the library is missing or does not know the GPU.
Watch nvml_watch(const std::string& library, const std::string& uuid) {
  const auto session = nvidia::NvmlSession::shared(library);
  nvidia::nvml::Device device = nullptr;
  if (!session || (*session)->functions().nvmlDeviceGetHandleByUUID == nullptr) return {};
  if ((*session)->functions().nvmlDeviceGetHandleByUUID(uuid.c_str(), &device) != nvidia::nvml::kSuccess)
    return {};
  return [lists = std::make_shared<NvmlLists>(*session, device)](int own) { return lists->look(own); };
}

/// The compute driver's list of AMD's GPUs in sysfs, as above: processes that hold memory of the GPU. Empty
/// if it does not know the GPU.
Watch kfd_watch(const std::string& sysfs_root, std::string_view pci_address) {
  const auto address = pci::parse_address(pci_address);
  if (!address) return {};
  const std::vector<std::uint32_t> numbers = kfd_numbers(sysfs_root, *address);
  if (numbers.empty()) return {};
  return [sysfs_root, numbers](int own) -> std::optional<std::string> {
    for (const auto& [pid, uses] : amd::kfd_processes(sysfs_root, amd::KfdDetail::memory, numbers)) {
      if (pid != own && holds_memory(uses)) return sentence(pid);
    }
    return std::nullopt;
  };
}

/// The daemon's attribution, which has what the daemon may see at its own interval: seconds. A workload
/// that this process is part of does not count; `own_cgroup` is the text of /proc/self/cgroup.
Watch daemon_watch(Daemon& daemon, const std::string& uuid, std::string own_cgroup) {
  return [&daemon, uuid, own_cgroup = std::move(own_cgroup),
          answered = SteadyClock::now()](int) mutable -> std::optional<std::string> {
    const Result<std::vector<Gpu>> gpus = daemon.gpus();
    const Gpu* const gpu = gpus ? find_gpu(*gpus, uuid) : nullptr;
    if (gpu == nullptr) {
      if (SteadyClock::now() - answered < kLongestSilence) return std::nullopt;
      return gpus ? "the daemon does not show the GPU any more" : gpus.error().message();
    }
    answered = SteadyClock::now();
    const auto is_other = [&](const Holder& each) { return !is_part_of(own_cgroup, each); };
    const auto other = std::ranges::find_if(gpu->holders, is_other);
    if (other == gpu->holders.end()) return std::nullopt;
    return "the " + other->kind + " " + other->workload + " uses the GPU";
  };
}

}  // namespace

std::optional<std::string> why_not(const Gpu& gpu) {
  if (!gpu.is_up) return "the daemon cannot read it";
  if (gpu.is_suspended) return "it sleeps";
  if (gpu.is_divided) return "it is divided into MIG instances";
  if (gpu.is_exclusive)
    return "its compute mode is exclusive, so the benchmark would keep a job from starting";
  for (const Holder& holder : gpu.holders) return "the " + holder.kind + " " + holder.workload + " uses it";
  const double busy = std::max(gpu.utilization.value_or(0), gpu.highest_utilization.value_or(0));
  if (busy > kMostUtilization) return "it was " + percent(busy) + " busy within the last 5 minutes";
  if (gpu.memory_used && gpu.memory_size && *gpu.memory_used > kMostMemoryShare * *gpu.memory_size)
    return percent(*gpu.memory_used / *gpu.memory_size) + " of its memory is used";
  if (gpu.temperature && *gpu.temperature >= kMostCelsius) return "it is hotter than 60 °C";
  return std::nullopt;
}

const Gpu* find_gpu(const std::vector<Gpu>& gpus, std::string_view name) {
  const auto address = pci::parse_address(name);
  const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) {
    return gpu.index == name || gpu.uuid == name ||
           (address && pci::parse_address(gpu.pci_address) == address);
  });
  return found == gpus.end() ? nullptr : &*found;
}

Result<std::vector<Gpu>> parse_gpus(std::string_view live, std::string_view series) {
  const Json root = Json::parse(live, nullptr, false);
  if (root.is_discarded() || !field(root, "gpus").is_array())
    return Error("/api/v1/live: the answer has no list \"gpus\"; is this gpumeter?");
  const Json details = Json::parse(series, nullptr, false);
  if (details.is_discarded() || !field(details, "series").is_array())
    return Error("/api/v1/series: the answer has no list \"series\"; is this gpumeter?");
  std::vector<Gpu> gpus;
  each(root, "gpus", [&](const Json& gpu) { gpus.push_back(gpu_of(gpu)); });
  each(details, "series", [&](const Json& one) { add(gpus, one); });
  return gpus;
}

// The daemon answers from memory. While a benchmark runs, a process is noticed between two answers.
Daemon::Daemon(client::Address address)
    : client_(std::move(address),
              {std::chrono::milliseconds(250), std::chrono::milliseconds(250), std::size_t{16} << 20U},
              "gpumeter-benchmark") {}

Result<std::string> Daemon::body(const char* path) {
  Result<client::HttpClient::Answer> answer = client_.get(path);
  if (client_.was_refused())
    return Error("no daemon listens there; start gpumeter, or give its address by --url");
  if (!answer) return answer.error().with("the daemon");
  if (answer->status == 401) return Error("the daemon requires a user; use --login-file");
  if (answer->status != 200) return Error(std::string(path) + ": status " + std::to_string(answer->status));
  return std::move(answer->body);
}

Result<std::vector<Gpu>> Daemon::gpus() {
  const Result<std::string> live = body("/api/v1/live?sparklines=1");
  if (!live) return live.error();
  const Result<std::string> series = body("/api/v1/series?match=gpu_mode&match=gpu_info");
  if (!series) return series.error();
  return parse_gpus(*live, *series);
}

Result<Lock> Lock::take(const std::string& path) {
  Result<Descriptor> file = open_or_create(path);
  if (!file) return file.error().with("cannot open the lock; name another file by --lock");
  int tries = 0;
  while (flock(file->number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return problem(path, errno);
    if (++tries == kTries) return Error(path + ": another process holds the lock");
    std::this_thread::sleep_for(kPause);
  }
  Descriptor openings(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!openings || inotify_add_watch(openings.number(), path.c_str(), IN_OPEN) < 0)
    return problem(path, errno).with("inotify");
  return Lock(*std::move(file), std::move(openings));
}

bool Lock::is_wanted() noexcept {
  std::array<char, 4096> events{};
  return read(openings_.number(), events.data(), events.size()) > 0;
}

Supervised supervise(const std::function<Outcome()>& work, milliseconds limit,
                     const std::function<std::optional<std::string>(int)>& other_user) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {End::stopped, std::strerror(errno), {}};
  const Descriptor receiving(ends[0]);
  Descriptor sending(ends[1]);
  const pid_t own = getpid();
  const pid_t pid = fork();
  if (pid < 0) return {End::stopped, std::strerror(errno), {}};
  if (pid == 0) work_in_child(work, sending, own);
  sending = Descriptor();
  Child child(pid);
  std::string text;
  const auto end = SteadyClock::now() + limit;
  while (receive(receiving, text)) {
    if (auto reason = other_user(pid)) return give_way(child, *std::move(reason));
    if (SteadyClock::now() >= end) return {End::stopped, "it did not end in time", {}};
  }
  const std::optional<int> status = child.wait();
  std::optional<Outcome> outcome = from_text(text);
  if (!outcome) return {End::stopped, how_it_ended(status), {}};
  return {End::finished, {}, *std::move(outcome)};
}

std::vector<Watch> watches_of(Daemon& daemon, const Gpu& gpu) {
  std::ifstream own_cgroup("/proc/self/cgroup");
  std::vector<Watch> watches;
  if (gpu.vendor == "nvidia") watches.push_back(nvml_watch("libnvidia-ml.so.1", gpu.uuid));
  if (gpu.vendor == "amd") watches.push_back(kfd_watch("/sys", gpu.pci_address));
  watches.push_back(daemon_watch(daemon, gpu.uuid, {std::istreambuf_iterator<char>(own_cgroup), {}}));
  std::erase_if(watches, [](const Watch& watch) { return !watch; });
  return watches;
}

bool is_part_of(std::string_view cgroup, const Holder& holder) noexcept {
  return !holder.workload.empty() && cgroup.find(holder.workload) != std::string_view::npos;
}

}  // namespace gpumeter::benchmark
