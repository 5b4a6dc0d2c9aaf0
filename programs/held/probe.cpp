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

namespace gpumeter::held {
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
  std::array<char, 256> text{};
  const Descriptor file(open((group + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? read(file.number(), text.data(), text.size()) : 0;
  const std::string_view events(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return events.find("frozen 1") != std::string_view::npos;
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
