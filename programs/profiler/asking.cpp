#include "programs/profiler/asking.hpp"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"
#include "programs/profiler/kineto.hpp"

namespace gpumeter::profiles {
namespace {

template <class Number>
Result<Number> number_in(std::string_view text, Number most) {
  const auto number = parse_number<Number>(text);
  if (number && *number >= 1 && *number <= most) return *number;
  return Error("expected a whole number from 1 to " + std::to_string(most));
}

Result<Done> take_line(std::string_view word, std::string_view value, Asked& asked) {
  if (word == "run" && !value.empty()) {
    asked.run = value;
    return Done{};
  }
  if (word == "folder" && !value.empty()) {
    asked.folder = value;
    return Done{};
  }
  if (word == "pid") {
    const auto pid = number_in<int>(value, 1 << 22);  // PID_MAX_LIMIT
    if (!pid) return pid.error().with("pid");
    asked.pid = *pid;
    return Done{};
  }
  if (word == "steps") {
    const auto steps = number_in<unsigned>(value, kMostSteps);
    if (!steps) return steps.error().with("steps");
    asked.extent.steps = *steps;
    return Done{};
  }
  if (word != "milliseconds") return Error("unknown word in the request");
  const auto time = number_in<std::int64_t>(value, kLongestTrace / std::chrono::milliseconds(1));
  if (!time) return time.error().with("milliseconds");
  asked.extent.duration = std::chrono::milliseconds(*time);
  return Done{};
}

constexpr std::string_view kPrefix = "gpumeter_";
constexpr std::string_view kSuffix = ".json";

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

constexpr const char* kHowTo =
    "start it with KINETO_USE_DAEMON=1 (PyTorch), or with a profiler service on one of "
    "profiles.profiler_ports (JAX, TensorFlow, PyTorch's debug server) or profiles.worker_sockets (the "
    "latter)";

}  // namespace

std::string text_of(const Asked& asked) {
  std::string text = asked.pid ? "pid " + std::to_string(*asked.pid) : "run " + asked.run;
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(asked.extent.duration).count();
  text += asked.extent.steps ? "\nsteps " + std::to_string(*asked.extent.steps)
                             : "\nmilliseconds " + std::to_string(time);
  if (!asked.folder.empty()) text += "\nfolder " + asked.folder;
  return text + "\n\n";
}

Result<Asked> parse_asked(std::string_view text) {
  Asked asked;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.empty()) {
      if (asked.run.empty() == !asked.pid) return Error("name either a run or a process");
      return asked;
    }
    const std::string_view word = take_until(line, ' ');
    if (const Result<Done> taken = take_line(word, line, asked); !taken) return taken.error();
  }
  return Error("the request has no end");
}

Result<std::string> path_in(std::string_view folder, std::string_view run) {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return Error("no random number");
  constexpr std::size_t kMostOfName = 40;
  std::string name(run.substr(0, kMostOfName));
  std::ranges::replace_if(
      name, [&](char c) { return !is_plain(c); }, '-');
  std::array<char, 16> digits{};
  const char* const end = std::to_chars(digits.begin(), digits.end(), random, 16).ptr;
  const std::string_view slash = folder.ends_with('/') ? "" : "/";
  std::string path =
      std::string(folder).append(slash) + std::string(kPrefix) + (name.empty() ? "process" : name) + "_" +
      std::string(digits.data(), static_cast<std::size_t>(end - digits.data())) + std::string(kSuffix);
  if (const Result<Done> checked = kineto::check_path(path); !checked) return checked.error();
  return path;
}

bool is_trace_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;  // NAME_MAX
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() > kLongest) return false;
  name.remove_suffix(kSuffix.size());
  return std::ranges::all_of(name, [](char c) { return is_plain(c) || c == '_'; });
}

bool Callers::accept_from(int listener, Nanoseconds now) {
  while (true) {
    Descriptor made(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!made) return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    Result<PeerProcess> peer = PeerProcess::of(made.number());
    if (!peer) continue;
    const std::uint32_t payer = payer_of(peer->uid(), owner_of_(peer->uid()));
    if (shares_.of(payer) >= kMostOfUser || (open_.size() >= kMost && !make_room(payer))) {
      constexpr std::string_view kFull = "refused too many requests of yours are under way\n";
      send(made.number(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      continue;
    }
    const int number = made.number();
    open_[number] = {std::move(made), *std::move(peer), payer, now, "", 0, false};
    shares_.add(payer);
  }
}

// A connection without a request leaves first, the oldest of them; otherwise the last request.
bool Callers::make_room(std::uint32_t payer) {
  const std::optional<std::uint32_t> crowd = shares_.yields_to(payer);
  if (!crowd) return false;
  const auto worth = [](const Open& open) {
    return std::pair(open.request != 0, open.request != 0 ? -open.since : open.since);
  };
  auto least = open_.end();
  for (auto each = open_.begin(); each != open_.end(); ++each) {
    if (each->second.payer != *crowd) continue;
    if (least == open_.end() || worth(each->second) < worth(least->second)) least = each;
  }
  end(least->first);
  return true;
}

std::vector<Callers::Call> Callers::read(int number) {
  const auto at = open_.find(number);
  if (at == open_.end()) return {};
  std::array<char, 1024> bytes{};
  const ssize_t got = recv(number, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  Open& open = at->second;
  if (got > 0) open.text.append(bytes.data(), static_cast<std::size_t>(got));
  if (got <= 0 || open.text.size() > kMostAsked) {
    end(number);
    return {};
  }
  if (open.request != 0) return lines_of(number, open);
  open.is_whole = open.text.starts_with('\n') || open.text.find("\n\n") != std::string::npos;
  return {};
}

bool Callers::have_asked() const {
  return std::ranges::any_of(open_, [](const auto& entry) { return entry.second.is_whole; });
}

std::vector<Callers::Call> Callers::take_requests() {
  std::vector<Call> calls;
  for (auto& [number, open] : open_) {
    if (std::exchange(open.is_whole, false)) calls.push_back({number, std::exchange(open.text, ""), 0});
  }
  return calls;
}

std::vector<Callers::Call> Callers::lines_of(int number, Open& open) {
  std::vector<Call> lines;
  for (std::size_t end = 0; (end = open.text.find('\n')) != std::string::npos; open.text.erase(0, end + 1)) {
    lines.push_back({number, open.text.substr(0, end), open.request});
  }
  return lines;
}

void Callers::end(int number) {
  const auto at = open_.find(number);
  if (at->second.request != 0) left_.push_back(at->second.request);
  close(number);
}

void Callers::close(int number) {
  const auto at = open_.find(number);
  if (at == open_.end()) return;
  shares_.remove(at->second.payer);
  open_.erase(at);
}

void Callers::tell(int number, std::string_view line) {
  if (!open_.contains(number)) return;
  const std::string text = std::string(line) + "\n";
  const ssize_t sent = send(number, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(text.size())) end(number);
}

void Callers::tell_about(Desk::Number request, std::string_view line) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at != open_.end()) tell(at->first, line);
}

bool Callers::pass_about(Desk::Number request, std::string_view line, const Descriptor& attached) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at == open_.end()) return false;
  std::string text = std::string(line) + "\n";
  iovec bytes{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = attached.number();
  std::memcpy(CMSG_DATA(head), &number, sizeof number);
  const ssize_t sent = sendmsg(at->first, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(text.size())) return true;
  end(at->first);
  return false;
}

void Callers::close_about(Desk::Number request) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at != open_.end()) close(at->first);
}

std::vector<Desk::Number> Callers::tick(Nanoseconds now) {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto& [number, open] = *at++;
    if (open.request == 0 && !open.is_whole && now - open.since >= kPatience) close(number);
  }
  return std::exchange(left_, {});
}

std::vector<int> Callers::numbers() const {
  std::vector<int> numbers;
  for (const auto& [number, open] : open_) numbers.push_back(number);
  return numbers;
}

std::vector<int> Targets::numbers_of(int pid) const {
  return numbers_in_namespaces(sysfs::read_text(proc::path(sources_.procfs, pid, "status")));
}

bool Targets::is_alive(int pid) const {
  return proc::is_alive(sysfs::read_text(proc::path(sources_.procfs, pid, "stat")));
}

bool Targets::is_admitted(std::uint32_t uid) const {
  if (sources_.users.empty()) return true;
  const std::uint32_t owner = sources_.owner_of(uid);
  const std::string name = sources_.name_of(owner);
  return std::ranges::any_of(sources_.users, [&](const std::string& user) {
    return user == name || user == std::to_string(owner) || user == std::to_string(uid);
  });
}

std::vector<Targets::Candidate> Targets::candidates(const std::function<bool(const Process&)>& is_wanted,
                                                    const std::shared_ptr<const jobs::RunList>& runs,
                                                    Nanoseconds now) {
  kin_.begin_pass(now);
  owners_.begin_pass(*runs);
  std::vector<Candidate> found;
  std::set<int> seen;
  for (Door* const door : doors_) {
    for (const Process& process : door->processes()) {
      if (!is_wanted(process) || !is_admitted(process.uid) || !seen.insert(process.pid).second) continue;
      found.push_back(candidate(process, *door, *runs));
    }
  }
  owners_.end_pass();
  return found;
}

Targets::Candidate Targets::candidate(const Process& process, Door& door, const jobs::RunList& jobs) {
  const std::string stat = sysfs::read_text(proc::path(sources_.procfs, process.pid, "stat"));
  workloads::ProcessUse use;
  use.id = {process.pid, proc::start_ticks(stat).value_or(0)};
  use.uid = process.uid;
  use.group = kin_.of(process.pid).group;
  use.present = true;
  std::vector<RunName> runs = owners_.of(use).runs;
  const std::string user = sources_.name_of(sources_.owner_of(process.uid));
  std::erase_if(runs, [&](const RunName& run) { return run.user != user; });  // of a parent, such as sudo
  const bool reports = std::ranges::any_of(
      jobs.processes, [&](const jobs::RunProcess& reporter) { return reporter.id.pid == process.pid; });
  return {process, &door, numbers_of(process.pid), std::move(runs), reports};
}

Result<Targets::Found> Targets::find(const Asked& asked, const Asker& asker,
                                     const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now) {
  if (!asker.numbers) return asker.numbers.error();
  const std::size_t depth = asker.numbers->size();
  kin_.begin_pass(now);
  const std::string group = kin_.of(asker.pid).group;
  if (depth > 1 && group.empty()) {
    return Error(
        "gpumeter-profiler cannot read the cgroup of the process that connected, in whose container it would "
        "look");
  }
  const std::uint32_t owner = sources_.owner_of(asker.uid);
  const auto may_ask = [&](const Process& process) {
    if (depth > 1 && kin_.of(process.pid).group != group) return false;
    return asker.uid == 0 || sources_.owner_of(process.uid) == owner;
  };
  const std::vector<Candidate> from = candidates(may_ask, runs, now);
  return asked.pid ? of_pid(*asked.pid, depth, from) : of_run(asked.run, from);
}

Member Targets::member_of(const Candidate& candidate) {
  const int pid = candidate.process.pid;
  return {candidate.door, pid, candidate.numbers.empty() ? pid : candidate.numbers.back()};
}

// `depth`: the number of pid namespaces that the client is in.
Result<Targets::Found> Targets::of_pid(int pid, std::size_t depth, const std::vector<Candidate>& from) const {
  std::vector<const Candidate*> matching;
  for (const Candidate& each : from) {
    if (depth > 1 && each.numbers.size() < depth) continue;  // the client does not see it
    const int number = depth == 1 ? each.process.pid : each.numbers[depth - 1];
    if (number == pid) matching.push_back(&each);
  }
  if (matching.size() > 1) return Error("several processes have the number; name a run");
  if (matching.empty()) {
    return Error(std::string("no process of yours with this number can be profiled; ") + kHowTo);
  }
  const Candidate& found = *matching.front();
  RunName run{sources_.name_of(sources_.owner_of(found.process.uid)), "_other"};
  if (!found.runs.empty()) run = found.runs.front();
  return Found{std::move(run), {member_of(found)}};
}

std::vector<const Targets::Candidate*> Targets::of_run(const std::function<bool(const RunName&)>& is_it,
                                                       const std::vector<Candidate>& from) {
  std::vector<const Candidate*> reporters;
  std::vector<const Candidate*> relatives;
  for (const Candidate& each : from) {
    if (std::ranges::any_of(each.runs, is_it)) (each.reports ? reporters : relatives).push_back(&each);
  }
  return reporters.empty() ? relatives : reporters;
}

Result<Targets::Found> Targets::of_run(const std::string& run, const std::vector<Candidate>& from) const {
  Found found;
  for (const Candidate* each : of_run([&](const RunName& name) { return name.run == run; }, from)) {
    const RunName& name = *std::ranges::find(each->runs, run, &RunName::run);
    if (!found.members.empty() && found.run != name) return Error("several users have a run of this name");
    found.run = name;
    if (found.members.size() < kMostMembers) found.members.push_back(member_of(*each));
  }
  if (found.members.empty()) {
    return Error(std::string("no process of yours in this run can be profiled; ") + kHowTo);
  }
  return found;
}

Targets::Found Targets::first_of(const RunName& run, const std::set<int>& preferred,
                                 const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now) {
  std::vector<Candidate> from = candidates([](const Process&) { return true; }, runs, now);
  std::erase_if(from, [](const Candidate& each) { return !each.door->serves_conditions(each.process.pid); });
  const std::vector<const Candidate*> of_it = of_run([&](const RunName& name) { return name == run; }, from);
  if (of_it.empty()) return {run, {}};
  const auto found = std::ranges::find_if(
      of_it, [&](const Candidate* each) { return preferred.contains(each->process.pid); });
  return {run, {member_of(found == of_it.end() ? *of_it.front() : **found)}};
}

}  // namespace gpumeter::profiles
