#include "daemon/app.hpp"

#include <malloc.h>

#include <csignal>
#include <thread>
#include <utility>

#include "build_info.hpp"
#include "collectors/builtin.hpp"
#include "daemon/cli/metrics_docs.hpp"
#include "exporter/http/listen_address.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {
namespace {

// READY tells systemd that the service works; a driver that hangs must not keep it from that.
constexpr auto kFirstPass = std::chrono::seconds(5);

// TimeoutStopSec is 10 s; hung lanes are left behind well before that.
constexpr auto kStop = std::chrono::seconds(3);

// Of the stop, for what waits to be written at its end.
constexpr auto kLastState = std::chrono::milliseconds(500);
constexpr auto kLastRecords = std::chrono::seconds(1);

// How long the start waits for the state folder.
constexpr auto kLoadState = std::chrono::seconds(3);

constexpr auto kReleased = std::chrono::minutes(10);
constexpr auto kProbe = std::chrono::milliseconds(1000);
constexpr auto kNextProbe = std::chrono::seconds(1);  // after one without an answer
constexpr auto kStuckWatchdog = std::chrono::seconds(5);

constexpr BuildFacts kBuild = {build::kVersion, build::kRevision, build::kBranch, build::kCompiler};

}  // namespace

App::App(Options options, config::Config config, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      log_(clock, config.log),
      config_(std::move(config)),
      store_(std::make_shared<Store>()),
      pages_(*store_),
      run_join_(config_.paths.procfs),
      jobs_({clock_, *store_, user_names_,
             [this](const jobs::Notice& notice) {
               log_.info(notice.message, {{"path", notice.path}, {"error", notice.error}});
             },
             [this](const jobs::JobSnapshot& jobs, SeriesList& out) { join_runs(jobs, out); }}) {
  store_->reserve(catalogue_families(builtin_collectors()));
}

int App::run() {
  const int code = serve_until_told();
  // stderr's or the journal's reader may stall; its thread is then left behind.
  left_behind_ = !log_.flush(kLastRecords) || left_behind_;
  return code;
}

int App::serve_until_told() {
  Result<Signals> signals = Signals::block();
  if (!signals) {
    log_.error("cannot take signals", {{"error", signals.error().message()}});
    return 1;
  }
  if (const Result<Done> started = start(); !started) {
    log_.error("cannot start", {{"error", started.error().message()}});
    stop();
    return 1;
  }
  wait_for_first_pass();
  malloc_trim(0);  // what reading flags and configuration took
  systemd::notify_ready(status_line());
  serve(*signals);
  systemd::notify_stopping();
  stop();
  log_.info("stopped");
  return 0;
}

Result<Done> App::start() {
  MutexLock lock(mutex_);
  log_.info("starting gpumeter", {{"version", build::kVersion}, {"revision", build::kRevision}});
  auto passed = systemd::take_passed_sockets();
  if (!passed) return passed.error();
  passed_ = *std::move(passed);
  const WorkloadSettings workloads =
      workload_settings_of(config_, [this](std::uint32_t uid) { return user_names_.of(uid); });
  workload_book_ = workloads.book;
  workload_info_ = std::make_unique<WorkloadInfo>(workloads, *store_);
  fleet_ = std::make_shared<Fleet>(store_, clock_, log_, open_directory(), std::nullopt, settings_of(config_),
                                   workloads, state_keeper_);
  bus_watcher_ = make_bus_watcher();
  bus_watcher_->want(has_bus(config_));
  if (Result<Done> listening = start_http(); !listening) return listening;
  if (Result<Done> started = start_threads(); !started) return started;
  jobs_.start(config_, passed_.jobs);
  std::vector<Fleet::Addition> collectors;
  for (const CollectorEntry* entry : enabled_collectors(config_)) {
    collectors.push_back({entry, context_of(config_, *entry, clock_)});
  }
  fleet_->add(std::move(collectors));
  return Done{};
}

DeviceDirectory App::open_directory() {
  state_keeper_ = std::make_shared<StateKeeper>(config_.paths.state, clock_, log_);
  return state_keeper_->load(clock_.monotonic() + kLoadState);
}

Result<Done> App::start_http() {
  Result<std::vector<ListenSocket>> listeners = open_listeners();
  if (!listeners) return listeners.error();
  RouteContext context;
  context.telemetry_path = config_.web.telemetry_path;
  context.max_requests = config_.web.max_requests;
  context.build = kBuild;
  context.devices = [this] { return fleet_->devices(); };
  context.collectors = [this] { return collector_states(); };
  routes_ = std::make_unique<Routes>(pages_, *store_, std::move(context));
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(*std::move(listeners), *routes_);
  if (!server) return server.error();
  server_ = *std::move(server);
  for (const Endpoint& endpoint : server_->endpoints())
    log_.info("Listening on", {{"address", endpoint.text()}});
  return Done{};
}

Result<std::vector<ListenSocket>> App::open_listeners() {
  std::vector<ListenSocket> listeners;
  // Sockets that are there count without the flag, so that gpumeter.socket is switched on and off alone; its
  // addresses cannot be had a second time anyway.
  if (options_.systemd_socket || !passed_.http.empty()) return adopt_listeners();
  for (const std::string& address : config_.web.listen) {
    Result<Listening> listening = listen_on(address);
    if (!listening) return listening.error();
    for (const std::string& note : listening->notes) log_.warn(note);
    for (ListenSocket& socket : listening->sockets) listeners.push_back(std::move(socket));
  }
  return listeners;
}

Result<std::vector<ListenSocket>> App::adopt_listeners() {
  if (Result<Done> usable = systemd::check_http(passed_.http); !usable) return usable.error();
  std::vector<ListenSocket> listeners;
  for (const systemd::PassedSocket& socket : passed_.http) {
    Result<ListenSocket> listener = ListenSocket::adopt(socket.fd);
    if (!listener) return listener.error();
    listeners.push_back(*std::move(listener));
  }
  warn_of_unused_addresses(listeners);
  return listeners;
}

void App::warn_of_unused_addresses(std::span<const ListenSocket> sockets) {
  if (config_.web.listen == config::Web{}.listen) return;
  for (const std::string& address : config_.web.listen) {
    if (is_served(address, sockets)) continue;
    log_.warn("web.listen is not used: gpumeter.socket holds the port, for its own addresses",
              {{"address", address},
               {"hint",
                "set the addresses by systemctl edit gpumeter.socket, or switch it off: systemctl disable "
                "--now gpumeter.socket && systemctl restart gpumeter"}});
  }
}

void App::wait_for_first_pass() {
  const Nanoseconds until = clock_.monotonic() + kFirstPass;
  bool is_over = false;
  while (!is_ready_ && clock_.monotonic() < until) {
    if (!std::exchange(is_over, fleet_->first_pass_over()) && is_over) upkeep_->request();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void App::serve(Signals& signals) {
  using std::chrono::milliseconds;
  const auto interval = systemd::watchdog_interval();
  const auto nap = interval ? std::chrono::duration_cast<milliseconds>(*interval / 2) : milliseconds(10000);
  hear_of_hot_plug();
  while (true) {
    const bool is_well = pet_systemd();
    jobs_.retry();
    if (hot_plug_ && hot_plug_->look_again(clock_.monotonic())) look_for_devices();
    const milliseconds at_most = is_well ? std::min(nap, milliseconds(10000)) : milliseconds(kNextProbe);
    const milliseconds patience = hot_plug_ ? hot_plug_->patience(clock_.monotonic(), at_most) : at_most;
    const std::optional<int> signal = signals.wait(patience, hot_plug_ ? hot_plug_->descriptor() : -1);
    if (signal == SIGTERM || signal == SIGINT) return;
    if (signal) obey(*signal);
  }
}

void App::obey(int signal) {
  if (signal == SIGHUP) reload();
  if (signal == SIGUSR1) release_drivers();
  if (signal == SIGUSR2) fleet_->restore();
}

void App::hear_of_hot_plug() {
  Result<HotPlug> opened = HotPlug::open();
  if (opened) {
    hot_plug_.emplace(*std::move(opened));
  } else {
    log_.info("udev is not heard, devices are looked for once a minute",
              {{"error", opened.error().message()}});
  }
}

void App::release_drivers() {
  const bool released = fleet_->release(kReleased);
  if (released) return log_.info("drivers are closed until SIGUSR2, or for 10 minutes");
  log_.error("drivers are not closed: a call is still under way");
}

// A card that falls off the bus, or comes to it, shows in gpumeter_pci_devices.
void App::look_for_devices() {
  fleet_->rediscover();
  bus_watcher_->request();
}

// systemd restarts a daemon that does not answer; a hung driver call is no reason for that. False: not well.
bool App::pet_systemd() {
  systemd::notify_status(status_line());
  if (!systemd::watchdog_interval()) return true;
  if (clock_.monotonic() - watchdog_->last_tick() > kStuckWatchdog) return false;
  if (const Result<Done> answer = server_->probe(kProbe); !answer) {
    log_.error("a listener does not answer", {{"error", answer.error().message()}});
    return false;
  }
  systemd::notify_watchdog();
  return true;
}

std::string App::status_line() const {
  std::size_t up = 0;
  const std::vector<DeviceStatus> devices = fleet_->devices();
  for (const DeviceStatus& device : devices) up += device.up ? 1 : 0;
  return std::to_string(up) + " of " + std::to_string(devices.size()) + " GPUs are read";
}

void App::stop() {
  const Nanoseconds deadline = clock_.monotonic() + kStop;
  if (server_) server_->stop();
  if (watchdog_) watchdog_->stop();
  if (upkeep_) upkeep_->request_stop();
  if (bus_watcher_) bus_watcher_->request_stop();
  left_behind_ = !jobs_.stop();
  if (fleet_ && !fleet_->stop(deadline)) left_behind_ = true;
  if (bus_watcher_ && !bus_watcher_->join(deadline)) left_behind_ = true;
  if (upkeep_ && !upkeep_->join(deadline)) left_behind_ = true;
  if (state_keeper_ && !state_keeper_->stop(clock_.monotonic() + kLastState)) left_behind_ = true;
  left_behind_ = left_behind_ || user_names_.hangs() || known_users_.hangs();
}

}  // namespace gpumeter
