#include "programs/held/pass.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"
#include "collectors/attribution/cgroup/slurm.hpp"

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

/// True if all processes of the group are frozen: one that enters would stop there.
bool is_frozen(const std::string& group) {
  return text_of(group + "/cgroup.events").find("frozen 1") != std::string::npos;
}

/// What the helper knows of a job: a file with lines NAME=VALUE.
struct Record {
  /// pending: the job is too young; failed: its group could not be entered, and is not entered again.
  enum class State { pending, asked, failed };

  State state = State::pending;
  /// Inode of the job's group: a requeued job has its number again, in another group.
  std::uint64_t group = 0;
  std::set<std::string> allowed;  ///< PCI addresses that the job's filter permits
  std::set<std::string> denied;
  std::set<std::string> gpus;  ///< held by the job: what the daemon reads

  bool operator==(const Record&) const = default;
};

/// By the name of the job's group: a job number or a SLUID.
using Records = std::map<std::string, Record, std::less<>>;

constexpr EnumNames<Record::State, 3> kStateNames{{{Record::State::pending, "pending"},
                                                   {Record::State::asked, "asked"},
                                                   {Record::State::failed, "failed"}}};

/// The file's text. WORKLOAD, KIND and GPU are those of `gpumeter allocate`.
std::string to_text(const std::string& job, const Record& record) {
  std::string text = "WORKLOAD=" + job + "\nKIND=slurm_job\nSTATE=";
  text.append(kStateNames.of(record.state)) += "\nGROUP=" + std::to_string(record.group) + "\n";
  const auto add_lines = [&](const char* name, const std::set<std::string>& values) {
    for (const std::string& value : values) text.append(name).append(value).append("\n");
  };
  add_lines("ALLOWED=", record.allowed);
  add_lines("DENIED=", record.denied);
  add_lines("GPU=", record.gpus);
  return text;
}

/// Ignores unknown lines.
Record parse_record(std::string_view text) {
  Record record;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view name = take_until(line, '=');
    if (name == "STATE") record.state = kStateNames.find(line).value_or(Record::State::pending);
    if (name == "GROUP") record.group = parse_number<std::uint64_t>(line).value_or(0);
    if (name == "ALLOWED") record.allowed.emplace(line);
    if (name == "DENIED") record.denied.emplace(line);
    if (name == "GPU") record.gpus.emplace(line);
  }
  return record;
}

/// Sets Record::gpus of all: a job holds the `managed` GPUs that its filter permits, which are those that the
/// filter of some job denied, and the `named` ones. Another GPU may be none of the scheduler's, such as one
/// for a display, and open to every job. A filter that denies no GPU may be none at all; then only the
/// `named` ones count, for which the administrator vouches.
void judge(Records& records, const std::set<std::string>& managed, const std::set<std::string>& named) {
  for (auto& [job, record] : records) {
    const std::set<std::string>& candidates = record.denied.empty() ? named : managed;
    record.gpus.clear();
    std::ranges::set_intersection(record.allowed, candidates, std::inserter(record.gpus, record.gpus.end()));
  }
}

// As `gpumeter allocate` names its files: kind and workload.
constexpr std::string_view kPrefix = "slurm_job:";
// The PCI addresses that are known to be managed, one a line.
constexpr const char* kManaged = ".managed";
// A job's file has two lines for each of at most 64 GPUs.
constexpr std::size_t kMostBytes = 16384;
// A machine runs fewer jobs.
constexpr std::size_t kMostFiles = 1024;

std::string file_of(const std::string& job) { return std::string(kPrefix) + job; }

/// What the folder has: a file a job, and kManaged.
struct Content {
  Records records;
  std::map<std::string, std::chrono::seconds> written;  ///< since 1970, by job
  std::set<std::string> managed;
};

Content read_all(const Folder& folder) {
  Content content;
  for (const std::string& name : folder.names(kMostFiles)) {
    if (!name.starts_with(kPrefix)) continue;
    const auto file = folder.read_of(folder.owner(), name, kMostBytes);
    if (!file) continue;
    const std::string job = name.substr(kPrefix.size());
    content.records[job] = parse_record(file->text);
    content.written[job] = std::chrono::seconds(file->modified);
  }
  const auto file = folder.read_of(folder.owner(), kManaged, kMostBytes);
  std::string_view lines = file ? std::string_view(file->text) : std::string_view();
  while (!lines.empty()) content.managed.emplace(take_until(lines, '\n'));
  return content;
}

bool is_named(const std::set<std::string>& names, const std::string& node) {
  return names.contains(node) || (names.contains("nvidia") && node.starts_with("nvidia")) ||
         (names.contains("dri") && node.starts_with("dri/"));
}

std::uint64_t inode_of(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

/// The GPUs whose nodes this process could open, and their paths. Another one's answer would be no filter's.
struct Nodes {
  std::vector<Gpu> gpus;
  std::vector<std::string> paths;
};

Nodes nodes_of(const Roots& roots) {
  Nodes nodes;
  for (Gpu& gpu : read_gpus(roots)) {
    std::string path = roots.dev + "/" + gpu.node;
    if (answer_of(path.c_str()) != Access::allowed) continue;
    nodes.gpus.push_back(std::move(gpu));
    nodes.paths.push_back(std::move(path));
  }
  return nodes;
}

class Pass {
 public:
  Pass(const Settings& settings, const Ask& ask, const Folder& folder)
      : settings_(settings), ask_(ask), folder_(folder), nodes_(nodes_of(settings.roots)) {
    for (const Gpu& gpu : nodes_.gpus) {
      if (is_named(settings.managed, gpu.node)) named_.insert(gpu.pci_address);
    }
  }

  Outcome run(std::chrono::seconds now) {
    const Content before = read_all(folder_);
    records_ = before.records;
    const cgroup::JobGroups groups = cgroup::read_job_groups(settings_.roots.sysfs);
    outcome_.jobs = groups.folders.size();
    remove_ended(groups);
    for (const auto& [job, group] : groups.folders) {
      const std::uint64_t inode = inode_of(group);
      Record& record = records_[job];
      if (record.group != inode) record = {.group = inode};
      const auto seen = before.records.find(job);
      const bool is_new = seen == before.records.end() || seen->second.group != inode;
      const auto age = is_new ? std::chrono::seconds(0) : now - before.written.at(job);
      const bool is_due = age >= settings_.settle;
      if (record.state == Record::State::pending && is_due) enter(job, group, record);
    }
    save(before);
    return std::move(outcome_);
  }

 private:
  void remove_ended(const cgroup::JobGroups& groups) {
    std::erase_if(records_, [&](const auto& entry) {
      const bool has_ended = !groups.folders.contains(entry.first);
      if (has_ended) {
        [[maybe_unused]] const Result<Done> ignored = folder_.remove(file_of(entry.first));
      }
      return has_ended;
    });
  }

  // Without a door, or in a frozen group, the job is looked at again in the next pass.
  void enter(const std::string& job, const std::string& group, Record& record) {
    const auto door = door_of(group);
    if (!door || is_frozen(*door) || nodes_.gpus.empty()) return;
    ++outcome_.entered;
    const auto answers = ask_(*door, nodes_.paths);
    record.state = answers ? Record::State::asked : Record::State::failed;
    if (!answers) return outcome_.failures.push_back("job " + job + ": " + answers.error().message());
    for (std::size_t at = 0; at < nodes_.gpus.size(); ++at) {
      const std::string& gpu = nodes_.gpus[at].pci_address;
      if ((*answers)[at] == Access::allowed) record.allowed.insert(gpu);
      if ((*answers)[at] == Access::denied) record.denied.insert(gpu);
    }
  }

  // Replaces a file at once, so that a reader never sees a part. In memory: nothing outlives a power cut.
  void write(const std::string& name, const std::string& text) {
    constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH;
    if (const auto written = folder_.replace(name, text, kMode, Folder::Outlives::crash); !written)
      outcome_.failures.push_back(written.error().message());
  }

  void save(const Content& before) {
    std::set<std::string> known = before.managed;
    for (const auto& [job, record] : records_) known.insert(record.denied.begin(), record.denied.end());
    if (known != before.managed) {
      std::string lines;
      for (const std::string& gpu : known) lines += gpu + "\n";
      write(kManaged, lines);
    }
    known.insert(named_.begin(), named_.end());
    judge(records_, known, named_);
    for (const auto& [job, record] : records_) {
      const auto old = before.records.find(job);
      if (old == before.records.end() || old->second != record) write(file_of(job), to_text(job, record));
    }
  }

  const Settings& settings_;
  const Ask& ask_;
  const Folder& folder_;
  const Nodes nodes_;
  std::set<std::string> named_;  // PCI addresses
  Records records_;
  Outcome outcome_;
};

}  // namespace

std::vector<Gpu> read_gpus(const Roots& roots) {
  std::vector<Gpu> gpus;
  add_nvidia(roots, gpus);
  add_drm(roots, gpus);
  std::ranges::sort(gpus, {}, [](const Gpu& gpu) { return std::pair(gpu.pci_address, gpu.node); });
  return gpus;
}

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

Result<Outcome> pass(const Settings& settings, const Ask& ask, std::chrono::seconds now) {
  const Result<Folder> folder = Folder::open_trusted(settings.folder);
  if (!folder) return folder.error();
  if (!*folder) return Error(settings.folder + ": " + std::strerror(ENOENT));
  return Pass(settings, ask, *folder).run(now);
}

}  // namespace gpumeter::held
