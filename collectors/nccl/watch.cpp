#include "collectors/nccl/watch.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/proc.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/attribution/workload_book.hpp"
#include "collectors/nccl/client.hpp"
#include "collectors/nccl/own_addresses.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::size_t kMostStatus = 64U << 10U;  // of /proc/PID/status
constexpr int kMostDoublings = 3;

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

}  // namespace

Watch::Watch(Parts parts, Settings settings)
    : parts_(std::move(parts)), settings_(std::move(settings)), gate_(parts_.procfs, settings_.oldest) {}

Nanoseconds Watch::turn() {
  const bool has_processes = look();
  for (auto& [uid, user] : users_) serve(uid, user);
  forget();
  return has_processes ? kLook : kIdleLook;
}

// If the kernel lists no sockets, no process is asked.
std::vector<tcp::Listener> Watch::ras_listeners() const {
  Result<std::vector<tcp::Listener>> all = tcp::listeners(parts_.procfs);
  if (!all) return {};
  std::erase_if(*all, [this](const tcp::Listener& each) {
    return each.port != settings_.port || each.address.empty();
  });
  return *std::move(all);
}

// Users without a process on a GPU are not looked at, whoever listens.
bool Watch::look() {
  std::map<std::uint32_t, User> users;
  for (const auto& device : parts_.uses()) {
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
    const auto known = users_.find(uid);
    if (known != users_.end()) {
      known->second.processes = std::move(user.processes);
      known->second.listeners = std::move(user.listeners);
      user = std::move(known->second);
    } else {
      user.name = parts_.user_name(uid);
    }
  }
  std::erase_if(users, [this](const auto& entry) {
    return !is_allowed(settings_.users, entry.first, entry.second.name);
  });
  users_ = std::move(users);
  return has_processes;
}

void Watch::serve(std::uint32_t uid, User& user) {
  const Nanoseconds now = parts_.clock.monotonic();
  Nanoseconds& next_query = next_query_[uid];
  if (now < next_query) return;
  std::vector<int> pids;
  for (const auto& [pid, process] : user.processes) pids.push_back(pid);
  std::set<std::uint64_t> sockets;
  for (const tcp::Listener& listener : user.listeners) sockets.insert(listener.inode);
  const Verdict verdict = gate_.check(pids, sockets);
  next_query = now + settings_.interval;
  if (verdict.refusal) return note(user, *verdict.refusal, verdict.reason);
  if (has_changed(uid, sockets)) return static_cast<void>(next_query = now);
  const Result<Done> asked = ask(uid, user, verdict);
  if (asked) {
    user.failures = 0;
    return note(user, State::asked, {});
  }
  user.failures = std::min(user.failures + 1, kMostDoublings);
  next_query = now + settings_.interval * (1 << user.failures);
  note(user, State::failed, asked.error().message());
}

// A process that began to listen since the look was not judged. The kernel may connect to it.
bool Watch::has_changed(std::uint32_t uid, const std::set<std::uint64_t>& sockets) const {
  std::set<std::uint64_t> now;
  for (const tcp::Listener& listener : ras_listeners()) {
    if (listener.uid == uid) now.insert(listener.inode);
  }
  return now != sockets;
}

void Watch::note(User& user, State state, std::string reason) {
  const bool is_new = user.state != state;
  user.state = state;
  user.reason = std::move(reason);
  if (is_new && parts_.say) parts_.say(user.name, state, user.reason);
}

Result<Done> Watch::ask(std::uint32_t uid, User& user, const Verdict& verdict) {
  RasClient client(parts_.clock, {.most_bytes = kMostAnswerBytes}, parts_.waker);
  const Result<std::string> text =
      client.status(user.listeners.front().is_ip6() ? AF_INET6 : AF_INET, settings_.port);
  if (!text) return text.error();
  const Result<Answer> answer = parse_answer(*text);
  if (!answer) return answer.error();
  const std::set<std::string> addresses = own_addresses();
  const std::vector<int> members = members_in(*answer, user, verdict);
  const auto [labels, is_reported] = run_of(user, members);
  Run& run = runs_[labels];
  const Nanoseconds now = parts_.clock.monotonic();
  run.progress.update(
      *answer, [&](const Rank& rank) { return addresses.contains(rank.host); }, now);
  run.answered_at = now;
  run.answered_at_unix = parts_.clock.realtime();
  run.expected_every = settings_.interval * (run.progress.leads() ? 1 : kSeldom);
  run.uid = uid;
  run.is_reported = is_reported;
  run.gpus.clear();
  for (const int pid : members)
    run.gpus.insert(user.processes.at(pid).gpus.begin(), user.processes.at(pid).gpus.end());
  next_query_[uid] = now + run.expected_every;
  return Done{};
}

// The kernel chooses the process that answers, so a user with two jobs gets the answers of either. The ranks'
// processes tell which. All processes that listen, if none is found.
std::vector<int> Watch::members_in(const Answer& answer, const User& user, const Verdict& verdict) const {
  const std::set<std::string> addresses = own_addresses();
  std::set<int> own;
  for (const Communicator& communicator : answer.communicators) {
    for (const Rank& rank : communicator.ranks) {
      if (addresses.contains(rank.host)) own.insert(rank.pid);
    }
  }
  std::vector<int> members;
  for (const auto& [pid, process] : user.processes) {
    if (own.contains(own_pid(parts_.procfs, pid))) members.push_back(pid);
  }
  return members.empty() ? verdict.members : members;
}

/// The run of most processes, and whether the job reports it.
std::pair<RunLabels, bool> Watch::run_of(const User& user, const std::vector<int>& pids) const {
  std::map<std::pair<bool, RunLabels>, std::size_t> votes;
  for (const int pid : pids) {
    const workloads::ProcessUse& use = user.processes.at(pid).use;
    const std::optional<RunLabels> run = parts_.run_of(use);
    ++votes[{run.has_value(), run.value_or(RunLabels{user.name, workload_of(use)})}];
  }
  if (votes.empty()) return {{user.name, workloads::unattributed().name}, false};
  const auto most = std::ranges::max_element(
      votes, {}, [](const auto& vote) { return std::pair(vote.first.first, vote.second); });
  return {most->first.second, most->first.first};
}

// A run whose processes left the GPUs, or which does not answer, leaves the page.
void Watch::forget() {
  const Nanoseconds now = parts_.clock.monotonic();
  std::erase_if(next_query_, [now](const auto& entry) { return entry.second <= now; });
  std::erase_if(runs_, [&](const auto& entry) {
    const Run& run = entry.second;
    return !users_.contains(run.uid) || now - run.answered_at > run.expected_every * kKept + kLook;
  });
}

void Watch::write(SeriesList& out) const {
  for (const auto& [uid, user] : users_) {
    if (!user.state) continue;
    out.add(self_catalog::nccl_state,
            Labels({{"user", user.name}, {"state", std::string(to_string(*user.state))}}), 1);
  }
  for (const auto& [name, run] : runs_) {
    const Labels labels({{"run", name.run}, {"user", name.user}});
    run.progress.write(labels, out);
    out.add(catalog::ml_nccl_last_success_timestamp, labels, to_seconds(run.answered_at_unix));
    if (run.is_reported) continue;
    for (const auto& [index, uuid] : run.gpus) {
      out.add(catalog::ml_run_gpu_info,
              labels.with({{"gpu", std::to_string(index)}, {"uuid", uuid}, {"source", "nccl"}}), 1);
    }
  }
}

}  // namespace gpumeter::nccl
