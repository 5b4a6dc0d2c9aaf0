#include "programs/nccl/part.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/attribution/workload_book.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/sources/tcp.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"
#include "programs/nccl/gate.hpp"
#include "programs/nccl/ras.hpp"
#include "programs/nccl/settings.hpp"

namespace gpumeter::nccl {
namespace {

constexpr Nanoseconds kLook = std::chrono::seconds(10);     // between two looks at processes and sockets
constexpr Nanoseconds kIdleLook = std::chrono::seconds(2);  // while no process is on a GPU
constexpr int kSeldom = 10;        // intervals between queries if another machine leads the job
constexpr int kKept = 3;           // queries without an answer after which a run leaves the page
constexpr int kMostDoublings = 3;  // of the interval, after failures
constexpr std::size_t kMostStatus = 64U << 10U;  // of /proc/PID/status

/// The machine's own addresses, as NCCL prints them (inet_ntop).
std::set<std::string> own_addresses() {
  std::set<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const sockaddr* address = each->ifa_addr;
    if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) continue;
    const void* bytes =
        address->sa_family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
            : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (::inet_ntop(address->sa_family, bytes, text.data(), text.size()) != nullptr)
      addresses.insert(text.data());
  }
  ::freeifaddrs(first);
  return addresses;
}

/// The process's number in its own PID namespace, by which NCCL knows it: the last one of "NSpid:". Returns
/// `pid` if the kernel prints none.
int own_pid(const std::string& procfs, int pid) {
  const SmallFile status = read_small_file(proc::path(procfs, pid, "status"), kMostStatus);
  std::string_view rest = status.text;
  while (!rest.empty()) {
    std::string_view line = trimmed(take_until(rest, '\n'));
    if (!line.starts_with("NSpid:")) continue;
    line.remove_prefix(line.find_last_of(" \t:") + 1);
    return parse_number<int>(line).value_or(pid);
  }
  return pid;
}

bool is_allowed(const std::vector<std::string>& allowed, std::uint32_t uid, const std::string& name) {
  return allowed.empty() || std::ranges::find(allowed, name) != allowed.end() ||
         std::ranges::find(allowed, std::to_string(uid)) != allowed.end();
}

using Gpu = std::pair<unsigned, std::string>;  // index and uuid

struct Process {
  workloads::ProcessUse use;
  std::set<Gpu> gpus;
};

/// The processes of a user that are on GPUs, and the user's sockets of RAS.
struct User {
  std::string name;
  std::map<int, Process> processes;      // by pid
  std::vector<tcp::Listener> listeners;  // all processes of one user share the port
  std::optional<State> state;            // nullopt: not decided yet
  int failures = 0;                      // since the last answer
};

/// A run, and whether the job reports it. Otherwise its name is that of the workload, as in
/// gpu_workload_info.
using NamedRun = std::pair<bool, jobs::RunName>;

std::string workload_of(const workloads::ProcessUse& use) {
  const std::string name = cgroup::attribution_of(cgroup::read_path(use.group)).workload;
  return name.empty() ? workloads::unattributed().name : name;
}

/// What the answers of one run say.
struct Run {
  Progress progress;
  Nanoseconds answered_at{};  // CLOCK_MONOTONIC
  Nanoseconds answered_at_unix{};
  Nanoseconds expected_every{};  // until the next answer
  std::uint32_t uid = 0;
  bool is_reported = false;
  std::set<Gpu> gpus;
};

class Queries final : public Part {
 public:
  explicit Queries(const PartContext& context)
      : machine_(context.machine),
        clock_(context.clock),
        log_(context.log),
        procfs_(context.paths.procfs),
        settings_(context.settings_of<Settings>()),
        gate_(procfs_, settings_.oldest),
        series_(context.store.attach({}, context.name)) {}

  Nanoseconds turn(Nanoseconds) override {
    const bool has_processes = look();
    const bool has_asked =
        std::ranges::any_of(users_, [this](auto& entry) { return serve(entry.first, entry.second); });
    forget();
    write();
    if (has_asked) return {};  // another user may wait
    return has_processes ? kLook : kIdleLook;
  }

 private:
  /// Returns true if a process is on a GPU. Users without one are not looked at, whoever listens.
  bool look() {
    std::map<std::uint32_t, User> users;
    for (const auto& device : *machine_.uses.get()) {
      for (const workloads::ProcessUse& use : device->processes) {
        if (!use.present || !use.uid) continue;
        Process& process = users[*use.uid].processes[use.id.pid];
        process.use = use;
        process.gpus.emplace(device->index, device->uuid);
      }
    }
    const bool has_processes = !users.empty();
    if (has_processes) {
      for (const tcp::Listener& listener : ras_listeners()) {
        const auto user = users.find(listener.uid);
        if (user != users.end()) user->second.listeners.push_back(listener);
      }
    }
    std::erase_if(users, [](const auto& entry) { return entry.second.listeners.empty(); });
    for (auto& [uid, user] : users) {
      user.name = names_.of(uid);
      const auto known = users_.find(uid);
      if (known == users_.end()) continue;
      user.state = known->second.state;
      user.failures = known->second.failures;
    }
    std::erase_if(users, [this](const auto& entry) {
      return !is_allowed(settings_.users, entry.first, entry.second.name);
    });
    users_ = std::move(users);
    return has_processes;
  }

  /// The sockets that listen on the port of RAS, and that loopback reaches. If the kernel lists no sockets,
  /// no process is asked.
  std::vector<tcp::Listener> ras_listeners() const {
    Result<std::vector<tcp::Listener>> all = tcp::listeners(procfs_);
    if (!all) return {};
    std::erase_if(*all, [this](const tcp::Listener& each) {
      return each.port != settings_.port || each.address.empty();
    });
    return *std::move(all);
  }

  /// Returns true after a query.
  bool serve(std::uint32_t uid, User& user) {
    const Nanoseconds now = clock_.monotonic();
    Nanoseconds& next_query = next_query_[uid];
    if (now < next_query) return false;
    std::vector<int> pids;
    for (const auto& [pid, process] : user.processes) pids.push_back(pid);
    std::set<std::uint64_t> sockets;
    for (const tcp::Listener& listener : user.listeners) sockets.insert(listener.inode);
    const Verdict verdict = gate_.check(pids, sockets);
    next_query = now + settings_.interval;
    if (verdict.refusal) return note(user, *verdict.refusal, verdict.reason), false;
    if (has_changed(uid, sockets)) return next_query = now, false;
    const Result<Done> asked = ask(uid, user, verdict);
    if (asked) {
      user.failures = 0;
      note(user, State::asked, {});
    } else {
      user.failures = std::min(user.failures + 1, kMostDoublings);
      next_query = now + settings_.interval * (1 << user.failures);
      note(user, State::failed, asked.error().message());
    }
    return true;
  }

  // A process that began to listen since the look was not judged. The kernel may connect to it.
  bool has_changed(std::uint32_t uid, const std::set<std::uint64_t>& sockets) const {
    std::set<std::uint64_t> now;
    for (const tcp::Listener& listener : ras_listeners()) {
      if (listener.uid == uid) now.insert(listener.inode);
    }
    return now != sockets;
  }

  /// Logs a change of the user's state.
  void note(User& user, State state, const std::string& reason) const {
    if (std::exchange(user.state, state) == state) return;
    if (state == State::asked) return log_.info("NCCL is asked about its ranks", {{"user", user.name}});
    if (state == State::failed) {
      return log_.warn("NCCL does not answer; the next query follows later",
                       {{"user", user.name}, {"error", reason}});
    }
    log_.warn("NCCL is not asked, because a query might crash the job",
              {{"user", user.name}, {"state", std::string(to_string(state))}, {"reason", reason}});
  }

  Result<Done> ask(std::uint32_t uid, const User& user, const Verdict& verdict) {
    const int family = user.listeners.front().is_ip6() ? AF_INET6 : AF_INET;
    const Result<std::string> text =
        ask_ras(clock_, family, settings_.port, {.most_bytes = kMostAnswerBytes});
    if (!text) return text.error();
    const Result<Answer> answer = parse_answer(*text);
    if (!answer) return answer.error();
    const std::set<std::string> addresses = own_addresses();
    const std::vector<int> members = members_in(*answer, user, verdict, addresses);
    const auto [is_reported, name] = run_of(user, members);
    Run& run = runs_[name];
    const Nanoseconds now = clock_.monotonic();
    run.progress.update(
        *answer, [&](const Rank& rank) { return addresses.contains(rank.host); }, now);
    run.answered_at = now;
    run.answered_at_unix = clock_.realtime();
    run.expected_every = settings_.interval * (run.progress.leads() ? 1 : kSeldom);
    run.uid = uid;
    run.is_reported = is_reported;
    run.gpus.clear();
    for (const int pid : members) {
      const std::set<Gpu>& gpus = user.processes.at(pid).gpus;
      run.gpus.insert(gpus.begin(), gpus.end());
    }
    next_query_[uid] = now + run.expected_every;
    return Done{};
  }

  // The kernel chooses the process that answers, so a user with two jobs gets the answers of either. The
  // ranks' processes tell which. All processes that listen, if none is found.
  std::vector<int> members_in(const Answer& answer, const User& user, const Verdict& verdict,
                              const std::set<std::string>& addresses) const {
    std::set<int> own;
    for (const Communicator& communicator : answer.communicators) {
      for (const Rank& rank : communicator.ranks) {
        if (addresses.contains(rank.host)) own.insert(rank.pid);
      }
    }
    std::vector<int> members;
    for (const auto& [pid, process] : user.processes) {
      if (own.contains(own_pid(procfs_, pid))) members.push_back(pid);
    }
    return members.empty() ? verdict.members : members;
  }

  /// The run of most processes. One that a job reports goes before a workload.
  NamedRun run_of(const User& user, const std::vector<int>& pids) const {
    const auto runs = machine_.runs.get();
    std::map<NamedRun, std::size_t> votes;
    for (const int pid : pids) {
      const workloads::ProcessUse& use = user.processes.at(pid).use;
      const auto run = runs->on_devices.find(use.id);
      const bool is_reported = run != runs->on_devices.end();
      ++votes[{is_reported, is_reported ? run->second : jobs::RunName{user.name, workload_of(use)}}];
    }
    if (votes.empty()) return {false, {user.name, workloads::unattributed().name}};
    const auto most = std::ranges::max_element(
        votes, {}, [](const auto& vote) { return std::pair(vote.first.first, vote.second); });
    return most->first;
  }

  // A run whose processes left the GPUs, or which does not answer, leaves the page.
  void forget() {
    const Nanoseconds now = clock_.monotonic();
    std::erase_if(next_query_, [now](const auto& entry) { return entry.second <= now; });
    std::erase_if(runs_, [&](const auto& entry) {
      const Run& run = entry.second;
      return !users_.contains(run.uid) || now - run.answered_at > run.expected_every * kKept + kLook;
    });
  }

  void write() {
    for (const auto& [uid, user] : users_) {
      if (!user.state) continue;
      series_.add(self_catalog::nccl_state,
                  Labels({{"user", user.name}, {"state", std::string(to_string(*user.state))}}), 1);
    }
    for (const auto& [name, run] : runs_) {
      const Labels labels({{"run", name.run}, {"user", name.user}});
      run.progress.write(labels, series_);
      series_.add(catalog::ml_nccl_last_success_timestamp, labels, to_seconds(run.answered_at_unix));
      if (run.is_reported) continue;
      for (const auto& [index, uuid] : run.gpus) {
        series_.add(catalog::ml_run_gpu_info,
                    labels.with({{"gpu", std::to_string(index)}, {"uuid", uuid}, {"source", "nccl"}}), 1);
      }
    }
    series_.commit(clock_.monotonic());
  }

  const Machine& machine_;
  const Clock& clock_;
  Log& log_;
  const std::string procfs_;
  const Settings settings_;
  Gate gate_;
  std::map<std::uint32_t, User> users_;  // by uid; those with a listening socket and a process on a GPU
  std::map<std::uint32_t, Nanoseconds> next_query_;  // by uid; also of users that left meanwhile
  std::map<jobs::RunName, Run> runs_;
  jobs::UserNames names_;
  SeriesList series_;
};

std::shared_ptr<Part> open(const PartContext& context) {
  return context.settings_of<Settings>().enabled ? open_part<Queries>(context) : nullptr;
}

}  // namespace

// A query takes 15 s at most (QueryLimits).
// The address of a section is a constant.
// NOLINTNEXTLINE(cppcoreguidelines-interfaces-global-init)
constinit const PartEntry kPart = {
    .name = "nccl", .options = &kSection, .deadline = std::chrono::seconds(30), .open = open};

}  // namespace gpumeter::nccl
