#include "programs/held/probe.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace gpumeter::held {
namespace {

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  while (const dirent* const entry = folder ? readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

std::string text_of(const std::string& path) {
  std::array<char, 4096> text{};
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? read(file.number(), text.data(), text.size()) : 0;
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

/// The last name of the link's target.
std::string target_of(const std::string& link) {
  std::array<char, 4096> text{};
  const ssize_t got = readlink(link.c_str(), text.data(), text.size());
  const std::string target(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return target.substr(target.rfind('/') + 1);
}

bool is_pci_address(std::string_view text) {
  return text.size() == std::string_view("0000:00:00.0").size() && text[4] == ':' && text[7] == ':' &&
         text[10] == '.' && text.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

/// "Device Minor: \t 0"
std::string minor_of(std::string_view information) {
  while (!information.empty()) {
    std::string_view line = take_until(information, '\n');
    if (take_until(line, ':') == "Device Minor") return std::string(trimmed(line));
  }
  return {};
}

bool has_instances(const Roots& roots, const std::string& minor) {
  const auto names = names_in(roots.procfs + "/driver/nvidia/capabilities/gpu" + minor + "/mig");
  return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("gi"); });
}

void add_nvidia(const Roots& roots, std::vector<Gpu>& gpus) {
  const std::string folder = roots.procfs + "/driver/nvidia/gpus";
  for (const std::string& address : names_in(folder)) {
    const std::string minor = minor_of(text_of(folder + "/" + address + "/information"));
    const bool is_number = parse_number<unsigned>(minor).has_value();
    if (is_pci_address(address) && is_number && !has_instances(roots, minor)) {
      gpus.push_back({address, "nvidia" + minor});
    }
  }
}

// NVIDIA's render nodes give no access to computing, and schedulers leave them open.
void add_drm(const Roots& roots, std::vector<Gpu>& gpus) {
  const std::string folder = roots.sysfs + "/class/drm";
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with("renderD")) continue;
    const std::string device = folder + "/" + name + "/device";
    const std::string address = target_of(device);
    if (!is_pci_address(address) || target_of(device + "/driver") == "nvidia") continue;
    gpus.push_back({address, "dri/" + name});
  }
}

}  // namespace

std::vector<Gpu> read_gpus(const Roots& roots) {
  std::vector<Gpu> gpus;
  add_nvidia(roots, gpus);
  add_drm(roots, gpus);
  std::ranges::sort(gpus, {}, [](const Gpu& gpu) { return std::pair(gpu.pci_address, gpu.node); });
  return gpus;
}

namespace {

// The process needs 1 ms of its own; the kernel's move between groups may wait for an RCU grace period, 10 to
// 20 ms.
constexpr int kMostMilliseconds = 1000;
// The process calls access() and nothing deeper.
constexpr std::size_t kStack = 65536;

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Access answer_of(const char* path) noexcept {
  if (access(path, R_OK | W_OK) == 0) return Access::allowed;
  return errno == EPERM ? Access::denied : Access::unknown;
}

struct Question {
  int procs;  ///< the group's cgroup.procs
  std::span<const std::string> paths;
  std::span<Access> answers;
  bool is_inside = false;
};

// Runs in the memory of the parent, which waits: system calls only, nothing that allocates.
int enter_and_answer(void* argument) noexcept {
  Question& question = *static_cast<Question*>(argument);
  if (write(question.procs, "0", 1) != 1) return errno;
  question.is_inside = true;
  for (std::size_t at = 0; at < question.paths.size(); ++at) {
    question.answers[at] = answer_of(question.paths[at].c_str());
  }
  return 0;
}

/// True if the process has ended; `status` is then that of waitpid(2).
bool waits_for(pid_t process, int& status) {
  constexpr timespec kPause = {0, 500'000};
  for (int half = 0; half < 2 * kMostMilliseconds; ++half) {
    if (waitpid(process, &status, WNOHANG) == process) return true;
    nanosleep(&kPause, nullptr);
  }
  return false;
}

class Stack {
 public:
  Stack()
      : memory_(
            mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {}
  ~Stack() {
    if (memory_ != MAP_FAILED) munmap(memory_, kStack);
  }
  Stack(Stack&&) = delete;

  void* top() const noexcept {
    return memory_ == MAP_FAILED ? nullptr : static_cast<char*>(memory_) + kStack;
  }

 private:
  void* memory_;
};

std::optional<std::string> leaf_of(const std::string& step) {
  std::string leaf = step + "/slurm";
  return exists(leaf + "/cgroup.procs") ? std::optional(std::move(leaf)) : std::nullopt;
}

}  // namespace

std::optional<std::string> door_of(const std::string& job_folder) {
  // Only v2 has this file.
  if (!exists(job_folder + "/cgroup.controllers")) {
    const bool is_of_devices = job_folder.find("/fs/cgroup/devices/") != std::string::npos;
    return is_of_devices && exists(job_folder + "/cgroup.procs") ? std::optional(job_folder) : std::nullopt;
  }
  for (const char* const step : {"/step_extern", "/step_batch"}) {
    if (auto leaf = leaf_of(job_folder + step)) return leaf;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(job_folder.c_str()), closedir);
  while (const dirent* const entry = folder ? readdir(folder.get()) : nullptr) {
    if (!std::string_view(entry->d_name).starts_with("step_")) continue;
    if (auto leaf = leaf_of(job_folder + "/" + entry->d_name)) return leaf;
  }
  return std::nullopt;
}

bool is_frozen(const std::string& group) {
  return text_of(group + "/cgroup.events").find("frozen 1") != std::string::npos;
}

Result<std::vector<Access>> ask(const std::string& group, std::span<const std::string> paths) {
  const std::string path = group + "/cgroup.procs";
  const Descriptor procs(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!procs) return Error(path + ": " + std::strerror(errno));
  std::vector<Access> answers(paths.size(), Access::unknown);
  Question question = {procs.number(), paths, answers};
  const Stack stack;
  if (stack.top() == nullptr) return Error("no memory for a stack");
  const pid_t process = clone(enter_and_answer, stack.top(), CLONE_VM | SIGCHLD, &question);
  if (process < 0) return Error(std::string("clone: ") + std::strerror(errno));
  int status = 0;
  if (!waits_for(process, status)) {
    kill(process, SIGKILL);
    // It may still use its stack and the question, so this process cannot go on without it.
    if (!waits_for(process, status)) _exit(EXIT_FAILURE);
    return Error(path + ": the process did not end in 1 s and was killed");
  }
  if (!question.is_inside) return Error(path + ": " + std::strerror(WEXITSTATUS(status)));
  return answers;
}

std::vector<Access> ask_here(std::span<const std::string> paths) {
  std::vector<Access> answers;
  for (const std::string& path : paths) answers.push_back(answer_of(path.c_str()));
  return answers;
}

}  // namespace gpumeter::held
