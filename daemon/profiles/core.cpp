#include "daemon/profiles/core.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <ranges>

#include "base/text.hpp"
#include "collectors/profiles/asking.hpp"

namespace gpumeter {
namespace {

using profiles::Status;

constexpr auto kNextAttempt = std::chrono::minutes(5);

// While a request is under way its client waits for the events.
constexpr Nanoseconds kTick = std::chrono::seconds(1);
constexpr Nanoseconds kBusyTick = std::chrono::milliseconds(200);

// The polls of one user's processes: Kineto sends one every 5 s, and may repeat it ten times. Allowance
// permits twice as many.
constexpr double kPollsPerSecond = 500;

std::string seconds_text(Nanoseconds time) {
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%.1f", to_seconds(time));
  return {text, static_cast<std::size_t>(std::max(0, size))};
}

std::string files_of(const profiles::Request& request) {
  std::string files;
  for (const profiles::Member& member : request.members) {
    files += (files.empty() ? "" : " ") + profiles::file_of(request.order, member);
  }
  return files;
}

}  // namespace

Profiler::Core::Core(Parts parts, profiles::Settings settings, const std::string& procfs)
    : parts_(std::move(parts)),
      settings_(std::move(settings)),
      woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      kineto_(parts_.owner_of),
      services_(parts_.clock,
                [procfs](const auto& listener) { return profiles::check_listener(procfs, listener); }),
      debug_([procfs](const auto& listener) { return profiles::check_listener(procfs, listener); },
             !settings_.trace_folder.empty()),
      fetches_(parts_.clock),
      targets_({procfs, parts_.owner_of, parts_.name_of, settings_.users}, {&kineto_, &services_, &debug_}),
      callers_(parts_.owner_of),
      allowance_(kPollsPerSecond, parts_.clock.monotonic()),
      series_(parts_.store.attach()),
      runs_(std::make_shared<const jobs::RunList>()) {
  places_.push_back({""});
  if (!settings_.kineto_folder.empty()) places_.push_back({settings_.kineto_folder});
}

void Profiler::Core::wake() const noexcept { eventfd_write(woken_.number(), 1); }

void Profiler::Core::take_runs(const jobs::RunList& runs) {
  auto copy = std::make_shared<const jobs::RunList>(runs);
  const MutexLock lock(mutex_);
  runs_ = std::move(copy);
}

std::shared_ptr<const jobs::RunList> Profiler::Core::runs() const {
  const MutexLock lock(mutex_);
  return runs_;
}

void Profiler::Core::take_findings(std::vector<profiles::Finding> findings) {
  {
    const MutexLock lock(mutex_);
    findings_ = std::move(findings);
  }
  wake();
}

void Profiler::Core::take_services(std::vector<profiles::PortHolder> services) {
  {
    const MutexLock lock(mutex_);
    found_ = std::move(services);
  }
  wake();
}

void Profiler::Core::look_for_services() {
  std::optional<std::vector<profiles::PortHolder>> found;
  {
    const MutexLock lock(mutex_);
    found = std::exchange(found_, std::nullopt);
  }
  if (!found) return;
  const auto split = std::ranges::stable_partition(
      *found, [](const profiles::PortHolder& each) { return !each.is_debug_server; });
  debug_.found({split.begin(), split.end()});
  found->erase(split.begin(), split.end());
  services_.found(*found);
}

void Profiler::Core::turn() {
  open_all();
  wait();
  look_for_services();
  judge();
  if (now() >= next_tick_ || desk_.busy()) tick();
}

void Profiler::Core::open_all() {
  for (Place& place : places_) open(place);
  if (settings_.socket.empty() || listener_ || now() < next_attempt_) return;
  constexpr mode_t kEveryone = 0666;
  auto opened = jobs::BoundSocket::open(settings_.socket, SOCK_STREAM, kEveryone);
  if (opened) {
    listener_ = *std::move(opened);
  } else if (!std::exchange(is_listener_logged_, true)) {
    parts_.log.warn("gpumeter profile cannot reach this daemon; gpumeter retries every 5 minutes",
                    {{"path", settings_.socket}, {"error", opened.error().message()}});
  }
  next_attempt_ = now() + kNextAttempt;
}

void Profiler::Core::open(Place& place) {
  if (place.socket || now() < place.next_attempt) return;
  auto opened = place.folder.empty() ? profiles::KinetoSocket::open_abstract()
                                     : profiles::KinetoSocket::open_in(place.folder);
  const std::string name = place.folder.empty() ? "dynolog (abstract)" : place.folder + "/dynolog";
  place.next_attempt = now() + kNextAttempt;
  if (opened) {
    place.socket = *std::move(opened);
    parts_.log.info("PyTorch's processes can be profiled", {{"socket", name}});
  } else if (!std::exchange(place.is_logged, true)) {
    parts_.log.warn("PyTorch's processes cannot be profiled by this socket; gpumeter retries every 5 minutes",
                    {{"socket", name}, {"error", opened.error().message()}});
  }
}

void Profiler::Core::wait() {
  std::vector<pollfd> ready = {{woken_.number(), POLLIN, 0}, {accepts_ ? listener_.number() : -1, POLLIN, 0}};
  for (const Place& place : places_) ready.push_back({place.socket ? place.socket->number() : -1, POLLIN, 0});
  for (const int number : callers_.numbers()) ready.push_back({number, POLLIN, 0});
  const Nanoseconds left = desk_.busy() ? kBusyTick : std::clamp(next_tick_ - now(), Nanoseconds(0), kTick);
  poll(ready.data(), ready.size(),
       static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  const auto is_ready = [&](std::size_t at) { return ready[at].revents != 0; };
  eventfd_t ignored = 0;
  if (is_ready(0)) eventfd_read(woken_.number(), &ignored);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!is_ready(2 + i)) continue;
    places_[i].socket->serve([this](const auto& peer, auto bytes) { return answer(peer, bytes); },
                             [this](const auto& peer) { kineto_.unsent(peer.pid); });
  }
  if (is_ready(1)) accepts_ = callers_.accept_from(listener_.number(), now());
  for (std::size_t i = 2 + places_.size(); i < ready.size(); ++i) {
    if (!is_ready(i)) continue;
    for (const Callers::Call& call : callers_.read(ready[i].fd)) {
      call.request == 0 ? take_call(call) : take_line(call);
    }
  }
}

// Each message that is one gets an answer, because Kineto waits for it, but none over the rate.
std::string Profiler::Core::answer(const profiles::Peer& peer, std::string_view datagram) {
  namespace kineto = profiles::kineto;
  if (allowance_.refuse(payer_of(peer.uid, parts_.owner_of(peer.uid)), ".", now()) != 0) return {};
  const std::optional<kineto::Message> message = kineto::parse(datagram);
  if (!message) return {};
  const std::string text = kineto_.hear(peer, *message, now(), parts_.clock.realtime());
  if (message->kind == kineto::Message::Kind::request) return kineto::answer(text);
  return kineto::answer_context(static_cast<std::int32_t>(kineto_.size()));
}

void Profiler::Core::refuse(int number, const std::string& why) {
  callers_.tell(number, "refused " + why);
  callers_.close(number);
}

void Profiler::Core::take_call(const Callers::Call& call) {
  Result<profiles::Asked> asked = profiles::parse_asked(call.text);
  if (!asked) return refuse(call.number, asked.error().message());
  const PeerProcess& asker = callers_.process(call.number);
  Result<Targets::Found> found =
      targets_.find(*asked, {asker.pid(), asker.uid(), asker.numbers()}, runs(), now());
  if (!found) return refuse(call.number, found.error().message());
  // Only now: the number may have become another process's while its files were read.
  if (!asker.is_alive()) return refuse(call.number, "the process that connected has ended");
  Result<std::string> path =
      profiles::path_in(asked->folder.empty() ? settings_.folder : asked->folder, found->run.run);
  if (!path) return refuse(call.number, path.error().message());
  profiles::Request request{found->run,
                            profiles::kByRequest,
                            "request of uid " + std::to_string(asker.uid()),
                            {*path, asked->extent},
                            std::move(found->members)};
  const profiles::Request made = request;
  const Result<Number> begun = begin(std::move(request));
  if (!begun) {
    ledger_.count(found->run, profiles::kByRequest, Status::refused, parts_.clock.boottime(),
                  parts_.clock.realtime());
    return refuse(call.number, begun.error().message());
  }
  callers_.bind_to(call.number, *begun);
  for (const profiles::Member& member : made.members) {
    callers_.tell_about(*begun,
                        "file " + std::to_string(member.pid) + " " + profiles::file_of(made.order, member));
  }
  callers_.tell_about(*begun, "accepted " + std::string(made.members.front().door->begins()));
  pass_connections(*begun, made);
}

void Profiler::Core::pass_connections(Number request, const profiles::Request& made) {
  for (const profiles::Member& member : made.members) {
    if (member.door != &debug_) continue;
    const std::string line =
        "fetch " + std::to_string(member.pid) + " " + std::to_string(debug_.owner(member.pid));
    if (const std::string socket = debug_.socket(member.pid); !socket.empty()) {
      callers_.tell_about(request, line + " " + socket);
      continue;
    }
    const Descriptor connection = debug_.connection(member.pid);
    if (!callers_.pass_about(request, line, connection)) debug_.ended(member.pid, "the client has left");
  }
}

// A client writes the traces of its own request only. If it lies, the figures of its own run are wrong.
void Profiler::Core::take_line(const Callers::Call& call) {
  std::string_view line = call.text;
  const std::string_view word = take_until(line, ' ');
  const auto pid = parse_number<int>(take_until(line, ' '));
  if (!pid || (word != "got" && word != "lost")) return;
  std::string error;
  if (word == "lost") error = line.empty() ? "the client has no file" : std::string(line);
  if (desk_.seen(call.request, *pid, error)) return;
  if (desk_.has(call.request, *pid)) debug_.ended(*pid, error);
}

Result<Profiler::Core::Number> Profiler::Core::begin(profiles::Request request) {
  const profiles::Request begun = request;
  Result<Number> number = desk_.open(std::move(request), now());
  if (!number) return number;
  parts_.log.info("profiling a run", {{"run", begun.run.run},
                                      {"user", begun.run.user},
                                      {"trigger", begun.trigger},
                                      {"reason", begun.reason},
                                      {"files", files_of(begun)}});
  return number;
}

void Profiler::Core::tick() {
  const Nanoseconds at = now();
  for (const int pid : desk_.pids()) {
    if (!targets_.is_alive(pid)) kineto_.gone(pid);
  }
  kineto_.tick(at);
  for (const Number left : callers_.tick(at)) {
    desk_.abandon(left);
    for (const int pid : desk_.pids(left)) debug_.ended(pid, "the client has left");
  }
  for (const Fetches::Ended& ended : fetches_.take_ended()) debug_.ended(ended.pid, ended.error);
  for (const profiles::Desk::Event& event : desk_.tick(at)) {
    if (event.outcome) {
      finish(event);
    } else {
      callers_.tell_about(event.number, event.line);
    }
  }
  if (at < next_tick_) return;
  next_tick_ = at + kTick;
  accepts_ = true;
  allowance_.tick(at);
  ledger_.tick(parts_.clock.boottime());
  ledger_.write(series_);
  series_.commit(at);
}

void Profiler::Core::finish(const profiles::Desk::Event& event) {
  const profiles::Request& request = event.request;
  for (const profiles::Member& member : request.members) fetches_.stop(member.pid);
  const std::string status(profiles::kStatusNames.of(event.outcome->status));
  ledger_.count(request.run, request.trigger, event.outcome->status, parts_.clock.boottime(),
                parts_.clock.realtime());
  callers_.tell_about(event.number, "end " + status);
  callers_.close_about(event.number);
  const bool is_done = event.outcome->status == Status::done;
  const Log::Fields fields = {{"run", request.run.run},     {"user", request.run.user},
                              {"trigger", request.trigger}, {"reason", request.reason},
                              {"status", status},           {"seconds", seconds_text(event.outcome->took)},
                              {"files", files_of(request)}, {"error", event.outcome->error}};
  is_done ? parts_.log.info("a run was profiled", fields) : parts_.log.warn("a run was not profiled", fields);
}

}  // namespace gpumeter
