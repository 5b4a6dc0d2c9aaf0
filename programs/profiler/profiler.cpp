#include "programs/profiler/profiler.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "base/users.hpp"
#include "base/worker.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/receiver.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/store/store.hpp"
#include "programs/client/http.hpp"
#include "programs/profiler/asking.hpp"
#include "programs/profiler/conditions.hpp"
#include "programs/profiler/desk.hpp"
#include "programs/profiler/kineto.hpp"
#include "programs/profiler/search.hpp"
#include "programs/profiler/services.hpp"
#include "programs/profiler/settings.hpp"
#include "systemd/notify.hpp"

namespace gpumeter::profiles {
namespace {

/// Kept over a reload, which opens the part again.
Descriptor& passed_socket() {
  static Descriptor socket;
  return socket;
}

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

std::string files_of(const Request& request) {
  std::string files;
  for (const Member& member : request.members) {
    files += (files.empty() ? "" : " ") + file_of(request.order, member);
  }
  return files;
}

/// The work of the thread "profiles". wake(), take_findings(), take_services() and budget(): any thread;
/// everything else: that thread. It calls nothing that may hang, because Kineto waits 90 ms for an answer.
class Core {
 public:
  explicit Core(const PartContext& context)
      : settings_(context.settings_of<Settings>()),
        clock_(context.clock),
        log_(context.log),
        machine_(context.machine),
        wake_part_(context.wake),
        check_([procfs = context.paths.procfs](const tcp::Listener& listener) {
          return check_listener(procfs, listener);
        }),
        services_(clock_, check_),
        debug_(clock_, check_, !settings_.trace_folder.empty()),
        budget_(settings_.budget, clock_),
        targets_({context.paths.procfs, owner_of_, [this](std::uint32_t uid) { return names_.of(uid); },
                  settings_.users},
                 {&kineto_, &services_, &debug_}),
        allowance_(kPollsPerSecond, now()),
        series_(context.store.attach({}, context.name)) {
    owners_.start();
    places_.push_back({""});
    if (!settings_.kineto_folder.empty()) places_.push_back({settings_.kineto_folder});
  }

  /// Waits for messages and answers them, up to a second.
  void turn() {
    open_all();
    wait();
    look_for_services();
    take_calls();
    judge();
    if (now() >= next_tick_ || desk_.busy()) tick();
  }

  void wake() const noexcept { eventfd_write(woken_.number(), 1); }
  void take_findings(std::vector<Finding> findings) GPUMETER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      findings_ = std::move(findings);
    }
    wake();
  }

  void take_services(std::vector<PortHolder> services) GPUMETER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      found_ = std::move(services);
    }
    wake();
  }

  BudgetBook& budget() noexcept { return budget_; }

 private:
  using Number = Desk::Number;

  /// A socket of Kineto, opened at the start or later, when another program gives the name back.
  struct Place {
    std::string folder;  ///< empty: the abstract one
    std::optional<KinetoSocket> socket = {};
    Nanoseconds next_attempt{};
    bool is_logged = false;
  };

  void open_all() {
    for (Place& place : places_) open(place);
    if (const int passed = passed_socket().number(); passed >= 0 && !listener_) {
      listener_ = jobs::BoundSocket(Descriptor(fcntl(passed, F_DUPFD_CLOEXEC, 0)));
    }
    if (settings_.socket.empty() || listener_ || now() < next_attempt_) return;
    constexpr mode_t kEveryone = 0666;
    auto opened = jobs::BoundSocket::open(settings_.socket, SOCK_STREAM, kEveryone);
    if (opened) {
      listener_ = *std::move(opened);
    } else if (!std::exchange(is_listener_logged_, true)) {
      log_.warn("gpumeter profile cannot reach this program; it retries every 5 minutes",
                {{"path", settings_.socket}, {"error", opened.error().message()}});
    }
    next_attempt_ = now() + kNextAttempt;
  }

  void open(Place& place) {
    if (place.socket || now() < place.next_attempt) return;
    auto opened = place.folder.empty() ? KinetoSocket::open_abstract() : KinetoSocket::open_in(place.folder);
    const std::string name = place.folder.empty() ? "dynolog (abstract)" : place.folder + "/dynolog";
    place.next_attempt = now() + kNextAttempt;
    if (opened) {
      place.socket = *std::move(opened);
      log_.info("PyTorch's processes can be profiled", {{"socket", name}});
    } else if (!std::exchange(place.is_logged, true)) {
      log_.warn("PyTorch's processes cannot be profiled by this socket; gpumeter retries every 5 minutes",
                {{"socket", name}, {"error", opened.error().message()}});
    }
  }

  void wait() {
    std::vector<pollfd> ready = {{woken_.number(), POLLIN, 0},
                                 {accepts_ ? listener_.number() : -1, POLLIN, 0}};
    for (const Place& place : places_)
      ready.push_back({place.socket ? place.socket->number() : -1, POLLIN, 0});
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
      for (const Callers::Call& call : callers_.read(ready[i].fd)) take_line(call);
    }
    if (callers_.have_asked()) wake_part_();
  }

  // Each message that is one gets an answer, because Kineto waits for it, but none over the rate.
  std::string answer(const Peer& peer, std::string_view datagram) {
    if (allowance_.refuse(payer_of(peer.uid, owner_of_(peer.uid)), ".", now()) != 0) return {};
    const std::optional<kineto::Message> message = kineto::parse(datagram);
    if (!message) return {};
    const std::string text = kineto_.hear(peer, *message, now(), clock_.realtime());
    if (message->kind == kineto::Message::Kind::request) return kineto::answer(text);
    return kineto::answer_context(static_cast<std::int32_t>(kineto_.size()));
  }

  // A request waits for what the next turn knows: its job may have begun since the last one.
  void take_calls() {
    if (!std::exchange(is_fresh_, false)) return;
    for (const Callers::Call& call : callers_.take_requests()) take_call(call);
  }

  void take_call(const Callers::Call& call) {
    Result<Asked> asked = parse_asked(call.text);
    if (!asked) return refuse(call.number, asked.error().message());
    const PeerProcess& asker = callers_.process(call.number);
    Result<Targets::Found> found =
        targets_.find(*asked, {asker.pid(), asker.uid(), asker.numbers()}, machine_.runs.get(), now());
    if (!found) return refuse(call.number, found.error().message());
    // Only now: the number may have become another process's while its files were read.
    if (!asker.is_alive()) return refuse(call.number, "the process that connected has ended");
    Result<std::string> path =
        path_in(asked->folder.empty() ? settings_.folder : asked->folder, found->run.run);
    if (!path) return refuse(call.number, path.error().message());
    Request request{found->run,
                    kByRequest,
                    "request of uid " + std::to_string(asker.uid()),
                    {*path, asked->extent},
                    std::move(found->members)};
    const Request made = request;
    const Result<Number> begun = begin(std::move(request));
    if (!begun) {
      count(found->run, kByRequest, Status::refused);
      return refuse(call.number, begun.error().message());
    }
    callers_.bind_to(call.number, *begun);
    for (const Member& member : made.members) {
      callers_.tell_about(*begun, "file " + std::to_string(member.pid) + " " + file_of(made.order, member));
    }
    callers_.tell_about(*begun, "accepted " + std::string(made.members.front().door->begins()));
    pass_connections(*begun, made);
  }

  // A client writes the traces of its own request only. If it lies, the figures of its own run are wrong.
  void take_line(const Callers::Call& call) {
    std::string_view line = call.text;
    const std::string_view word = take_until(line, ' ');
    const auto pid = parse_number<int>(take_until(line, ' '));
    if (!pid || (word != "got" && word != "lost")) return;
    std::string error;
    if (word == "lost") error = line.empty() ? "the client has no file" : std::string(line);
    if (desk_.seen(call.request, *pid, error)) return;
    if (desk_.has(call.request, *pid)) debug_.ended(*pid, error);
  }

  void pass_connections(Number request, const Request& made) {
    for (const Member& member : made.members) {
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

  void refuse(int number, const std::string& why) {
    callers_.tell(number, "refused " + why);
    callers_.close(number);
  }

  Result<Number> begin(Request request) {
    const Request begun = request;
    Result<Number> number = desk_.open(std::move(request), now());
    if (!number) return number;
    log_.info("profiling a run", {{"run", begun.run.run},
                                  {"user", begun.run.user},
                                  {"trigger", begun.trigger},
                                  {"reason", begun.reason},
                                  {"files", files_of(begun)}});
    return number;
  }

  void tick() {
    const Nanoseconds at = now();
    for (const int pid : desk_.pids()) {
      if (!targets_.is_alive(pid)) kineto_.gone(pid);
    }
    kineto_.tick(at);
    for (const Number left : callers_.tick(at)) {
      desk_.abandon(left);
      for (const int pid : desk_.pids(left)) debug_.ended(pid, "the client has left");
    }
    for (const Desk::Event& event : desk_.tick(at)) {
      if (event.outcome) {
        finish(event);
        next_tick_ = at;
        wake_part_();
      } else {
        callers_.tell_about(event.number, event.line);
      }
    }
    if (at < next_tick_) return;
    next_tick_ = at + kTick;
    accepts_ = true;
    allowance_.tick(at);
    ledger_.tick(clock_.boottime());
    ledger_.write(series_);
    series_.commit(at);
  }

  void finish(const Desk::Event& event) {
    const Request& request = event.request;
    const std::string status(kStatusNames.of(event.outcome->status));
    count(request.run, request.trigger, event.outcome->status);
    callers_.tell_about(event.number, "end " + status);
    callers_.close_about(event.number);
    const bool is_done = event.outcome->status == Status::done;
    const Log::Fields fields = {{"run", request.run.run},     {"user", request.run.user},
                                {"trigger", request.trigger}, {"reason", request.reason},
                                {"status", status},           {"seconds", seconds_text(event.outcome->took)},
                                {"files", files_of(request)}, {"error", event.outcome->error}};
    is_done ? log_.info("a run was profiled", fields) : log_.warn("a run was not profiled", fields);
  }

  void count(const RunName& run, const std::string& trigger, Status status) {
    ledger_.count(run, trigger, status, clock_.boottime(), clock_.realtime());
  }
  void judge() {
    std::optional<std::vector<Finding>> findings;
    {
      const MutexLock lock(mutex_);
      findings = std::exchange(findings_, std::nullopt);
    }
    if (!findings) return;
    std::set<std::pair<RunName, std::string>> held;
    for (const Finding& finding : *findings) {
      held.emplace(finding.run, finding.condition);
      act_on(finding, !held_.contains({finding.run, finding.condition}));
    }
    held_ = std::move(held);
  }

  void look_for_services() {
    std::optional<std::vector<PortHolder>> found;
    {
      const MutexLock lock(mutex_);
      found = std::exchange(found_, std::nullopt);
    }
    if (!found) return;
    is_fresh_ = true;
    const auto split = std::ranges::stable_partition(
        *found, [](const PortHolder& each) { return !each.process.has_worker_server; });
    debug_.found({split.begin(), split.end()});
    found->erase(split.begin(), split.end());
    services_.found(*found);
  }

  // A condition that holds on is refused, counted and logged once.
  void act_on(const Finding& finding, bool is_new) {
    const Targets::Found found =
        targets_.first_of(finding.run, processes_on(finding.gpu), machine_.runs.get(), now());
    if (found.members.empty()) return;
    std::optional<std::string> refusal = budget_.refusal(finding.run);
    if (desk_.has_automatic()) refusal = "a profile by condition is under way";
    const Member& member = found.members.front();
    const bool is_fetched = member.door == &debug_;
    const std::string& folder = is_fetched ? settings_.trace_folder : settings_.folder;
    const Result<std::string> path = path_in(folder, finding.run.run);
    if (!path) refusal = path.error().message();
    if (!refusal) {
      const Order order{*path, {std::nullopt, settings_.duration}};
      const Result<Number> begun =
          begin({finding.run, finding.condition, finding.reason, order, found.members});
      if (begun && is_fetched) debug_.fetch(member.pid, order);
      if (begun) {
        budget_.spend(finding.run);
        return wake_part_();
      }
      refusal = begun.error().message();
    }
    if (!is_new) return;
    count(finding.run, finding.condition, Status::refused);
    log_.info("a condition holds, and takes no profile", {{"run", finding.run.run},
                                                          {"user", finding.run.user},
                                                          {"trigger", finding.condition},
                                                          {"reason", finding.reason},
                                                          {"error", *refusal}});
  }

  std::set<int> processes_on(const std::string& gpu) const {
    std::set<int> pids;
    if (gpu.empty()) return pids;
    for (const auto& device : *machine_.uses.get()) {
      if (device->uuid != gpu) continue;
      for (const workloads::ProcessUse& use : device->processes) {
        if (use.present) pids.insert(use.id.pid);
      }
    }
    return pids;
  }

  Nanoseconds now() const noexcept { return clock_.monotonic(); }

  const Settings settings_;
  const Clock& clock_;
  Log& log_;
  const Machine& machine_;
  const std::function<void()> wake_part_;
  jobs::UserNames names_;
  UserOwners owners_{"/etc/subuid"};
  const std::function<std::uint32_t(std::uint32_t uid)> owner_of_ = [this](std::uint32_t uid) {
    return owners_.owner_of(uid);
  };
  const Descriptor woken_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  KinetoDoor kineto_{owner_of_};
  const std::function<Result<Done>(const tcp::Listener&)> check_;
  ServiceDoor services_;
  DebugDoor debug_;
  Desk desk_;
  Ledger ledger_;
  BudgetBook budget_;
  Targets targets_;
  Callers callers_{owner_of_};
  jobs::Allowance allowance_;
  std::vector<Place> places_;
  jobs::BoundSocket listener_;
  Nanoseconds next_attempt_{};  ///< of the listener
  bool is_listener_logged_ = false;
  SeriesList series_;
  Nanoseconds next_tick_{};
  bool is_fresh_ = false;  ///< a turn has ended since the last requests were taken
  bool accepts_ = true;  ///< false: no descriptor was left for a connection; accepts none until the next tick
  std::set<std::pair<RunName, std::string>> held_;  ///< run and condition at the last judgement

  mutable Mutex mutex_;
  std::optional<std::vector<Finding>> findings_ GPUMETER_GUARDED_BY(mutex_);
  std::optional<std::vector<PortHolder>> found_ GPUMETER_GUARDED_BY(mutex_);
};

/// Of systemd's StateDirectory=; empty: the budget is not kept.
std::string folder_of_state() {
  const char* const folder = std::getenv("STATE_DIRECTORY");
  return folder == nullptr ? "" : folder;
}

// The page has 35 000 series at the most, of 200 bytes each.
constexpr client::Limits kPage = {std::chrono::seconds(1), std::chrono::seconds(2), 16U << 20U};

/// The thread "profiles" answers; a turn looks for profiler services and judges the conditions.
class Profiler final : public Part {
 public:
  explicit Profiler(const PartContext& context)
      : settings_(context.settings_of<Settings>()),
        clock_(context.clock),
        log_(context.log),
        daemon_({.url = "http://localhost", .host = "", .socket = context.paths.api}, kPage,
                "gpumeter-profiler"),
        conditions_(settings_.thresholds),
        search_(settings_, context.paths.procfs, clock_, log_),
        core_(std::make_shared<Core>(context)),
        worker_(clock_) {
    const Result<Done> resumed = core_->budget().resume(state_);
    if (!resumed)
      log_.error("the budget starts again", {{"path", state_}, {"error", resumed.error().message()}});
  }

  ~Profiler() override {
    constexpr Nanoseconds kPatience = std::chrono::seconds(1);
    worker_.request_stop();
    core_->wake();
    worker_.join(clock_.monotonic() + kPatience);
  }

  Nanoseconds turn(Nanoseconds now) override {
    constexpr Nanoseconds kEvery = std::chrono::seconds(5);
    if (!is_started_) {
      const Result<Done> started = worker_.start("profiles", [core = core_] {
        core->turn();
        return Nanoseconds(0);
      });
      is_started_ = static_cast<bool>(started);
      if (!started) log_.error("no job can be profiled", {{"error", started.error().message()}});
    }
    core_->take_services(search_.turn());
    if (!settings_.thresholds.enabled.empty() && now >= next_judgement_) {
      next_judgement_ = now + kEvery;
      judge(now);
    }
    if (const Result<Done> kept = core_->budget().keep(state_); !kept) {
      log_.error("a restart forgets the budget", {{"path", state_}, {"error", kept.error().message()}});
    }
    return kEvery;
  }

 private:
  // All series, whatever the configuration leaves out of a scrape's page.
  void judge(Nanoseconds now) {
    const Result<client::HttpClient::Answer> page = daemon_.get("/metrics?detail=full");
    std::string error = page ? "" : page.error().message();
    if (page && page->status != 200) error = "HTTP status " + std::to_string(page->status);
    if (error != std::exchange(error_, error) && !error.empty()) {
      log_.warn("no condition is judged: the daemon does not answer", {{"error", error}});
    }
    if (error.empty()) core_->take_findings(conditions_.judge(page->body, now));
  }

  const Settings settings_;
  const Clock& clock_;
  Log& log_;
  const std::string state_ = folder_of_state();
  Nanoseconds next_judgement_{};
  client::HttpClient daemon_;
  std::string error_;  ///< of the last question to the daemon
  Conditions conditions_;
  ServiceSearch search_;
  const std::shared_ptr<Core> core_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
  bool is_started_ = false;
};

std::shared_ptr<Part> open(const PartContext& context) {
  if (!context.settings_of<Settings>().enabled) return nullptr;
  return std::make_shared<Profiler>(context);
}

}  // namespace

void take_passed_socket() {
  Result<systemd::PassedSockets> passed = systemd::take_passed_sockets();
  if (!passed) return;
  for (const systemd::PassedSocket& socket : passed->http) {
    Descriptor taken(socket.fd);
    const bool is_ours = socket.name == "profiles" && socket.is_unix &&
                         socket.kind == systemd::PassedSocket::Kind::listening_stream;
    if (is_ours && fcntl(socket.fd, F_SETFL, O_NONBLOCK) == 0) passed_socket() = std::move(taken);
  }
}

// The address of a section is a constant.
// NOLINTNEXTLINE(cppcoreguidelines-interfaces-global-init)
constinit const PartEntry kPart = {
    .name = "profiler", .options = &kSection, .deadline = std::chrono::seconds(10), .open = open};

}  // namespace gpumeter::profiles
