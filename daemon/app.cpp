#include "daemon/app.hpp"

#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/build_info.hpp"
#include "base/program.hpp"
#include "collectors/api/event_ledger.hpp"
#include "collectors/builtin.hpp"
#include "collectors/jobs/join/facts_json.hpp"
#include "collectors/kernel/part.hpp"
#include "collectors/pages/replay.hpp"
#include "config/config.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/listeners.hpp"
#include "daemon/reload.hpp"
#include "daemon/setup.hpp"
#include "daemon/state/figures.hpp"
#include "exporter/listen/socket.hpp"
#include "programs/nccl/settings.hpp"
#include "programs/profiler/settings.hpp"
#include "programs/servers/settings.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {
namespace {

// The limit for READY, which reports to systemd that the service works: a driver that hangs must not delay
// it.
constexpr auto kFirstPass = std::chrono::seconds(5);

// TimeoutStopSec is 10 s; lanes that hang are left behind well before that.
constexpr auto kStop = std::chrono::seconds(3);

// The parts of the stop for data that waits to be written at its end.
constexpr auto kLastState = std::chrono::milliseconds(500);
constexpr auto kLastRecords = std::chrono::seconds(1);

// The limit of the start's wait for the state folder.
constexpr auto kLoadState = std::chrono::seconds(3);

/// Empty if the machine has no name that fits.
std::string host_name() {
  std::array<char, 256> name{};  // HOST_NAME_MAX is 64
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Takes ownership of the descriptors: a socket that is not used is closed.
std::vector<jobs::PassedSocket> job_sockets_of(const std::vector<systemd::PassedSocket>& passed) {
  using Kind = systemd::PassedSocket::Kind;
  std::vector<jobs::PassedSocket> sockets;
  for (const systemd::PassedSocket& socket : passed) {
    int type = socket.kind == Kind::datagram ? SOCK_DGRAM : 0;
    if (socket.kind == Kind::listening_stream) type = SOCK_STREAM;
    sockets.push_back({Descriptor(socket.fd), socket.name, socket.is_unix ? type : 0});
  }
  return sockets;
}

/// Null unless stderr is the stream that systemd connected to the journal.
Log::Journal journal() {
  const bool is_journal = systemd::is_journal_stream(STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
  return is_journal ? systemd::send_to_journal : nullptr;
}

/// Sections of the file whose work is that of a service.
void name_programs(const config::Config& config, Log& log) {
  const auto name = [&log](const char* section, const char* unit) {
    log.info("a service does what this section configures", {{"section", section}, {"unit", unit}});
  };
  const auto& nccl = config.of<nccl::Settings>();
  if (nccl.enabled) name("nccl", "gpumeter-nccl.service");
  if (!nccl.inspector.folder.empty() || !nccl.flight_recorder.empty())
    name("nccl", "gpumeter-nccl-files.service");
  if (config.of<profiles::Settings>().enabled) name("profiles", "gpumeter-profiler.service");
  const auto& servers = config.of<servers::Settings>();
  if (servers.enabled || !servers.targets.empty()) name("servers", "gpumeter-servers.service");
}

// The main loop.
constexpr auto kReleased = std::chrono::minutes(10);
constexpr auto kProbe = std::chrono::milliseconds(1000);
constexpr auto kStuckWatchdog = std::chrono::seconds(5);

// The interval between two checks of all parts, and the pause after a probe without an answer.
constexpr auto kNap = std::chrono::milliseconds(10'000);
constexpr auto kNextProbe = std::chrono::milliseconds(1000);

// The limits for stopping a part and a collector. One that hangs is then left behind.
constexpr auto kStopPart = std::chrono::seconds(1);
constexpr auto kStopCollector = std::chrono::seconds(3);

BuildFacts build_facts() { return {build::kVersion, build::kRevision, build::kBranch, build::kCompiler}; }

}  // namespace

App::App(Options options, config::Config config, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      config_(std::move(config)),
      log_(clock, config_.get()->of<Logging>(), journal()),
      store_(std::make_shared<Store>()),
      paths_(config_.get()->of<Paths>()),
      pages_(*store_),
      history_(*store_, clock_),
      live_(history_, clock_, machine_.health, host_name()),
      parts_(std::make_shared<PartHost>(PartHost::Environment{*store_, machine_, clock_, log_, paths_},
                                        scheduler_)),
      jobs_({clock_, *store_, user_names_,
             [this](const jobs::Notice& notice) {
               const Log::Fields fields = {{"path", notice.path}, {"error", notice.error}};
               if (notice.error.empty()) return log_.info(notice.message, fields);
               log_.warn(notice.message, fields);
             },
             machine_, &saved_runs_->now, config_.get()->of<Paths>().procfs, "/etc/subuid",
             config_.get()->of<DeviceLabels>()},
            config_.get()->of<jobs::Settings>(), config_.get()->of<jobs::Limits>()) {
  pages_.select(config_.get()->of<PageSelection>());
}

int App::run(Signals& signals) {
  const Result<Done> started = start();
  if (started) {
    wait_for_first_pass();
    malloc_trim(0);  // returns memory of flags and configuration to the system
    unmap_code();    // most of it was needed for the start only
    serve(signals);
  } else {
    log_.error("cannot start", {{"error", started.error().message()}});
  }
  stop();
  if (started) log_.info("stopped");
  // The reader of stderr or the journal may stall; the log's thread is then left behind.
  left_behind_ = !log_.flush(kLastRecords) || left_behind_;
  return started ? 0 : 1;
}

Result<Done> App::start() {
  const auto running = config_.get();
  const config::Config& config = *running;
  log_.info("starting gpumeter", {{"version", build::kVersion}, {"revision", build::kRevision}});
  if (replays(config)) {
    if (Result<Done> known = pages::check_recording(config.of<pages::ReplaySettings>().file); !known)
      return known;
  } else {
    name_programs(config, log_);
  }
  auto passed = systemd::take_passed_sockets();
  if (!passed) return passed.error();
  make_fleet(config);
  bus_watcher_ = make_bus_watcher(config);
  drm_scans_ = std::make_shared<DrmScans>(scan_sources_of(config.of<Paths>()), clock_);
  machine_.drm_users = drm_scans_;
  if (Result<Done> listening = start_http(config.of<HttpSettings>(), passed->http); !listening)
    return listening;
  if (Result<Done> started = start_threads(); !started) return started;
  std::vector<jobs::PassedSocket> job_sockets = job_sockets_of(passed->jobs);
  if (config.of<jobs::Settings>().enabled) {
    start_jobs(std::move(job_sockets));
  } else {
    saved_runs_->now.publish({});
  }
  std::vector<Fleet::Addition> collectors;
  for (const CollectorEntry& entry : builtin_collectors()) {
    if (is_enabled(entry, config))
      collectors.push_back({&entry, context_of(config, entry, clock_, machine_.drm_users, machine_.events)});
  }
  fleet_->add(std::move(collectors));
  return Done{};
}

void App::make_fleet(const config::Config& config) {
  const Paths& paths = config.of<Paths>();
  const WorkloadSettings workloads =
      workload_settings_of(config, clock_, [this](std::uint32_t uid) { return user_names_.of(uid); });
  workload_costs_ = workloads.costs;
  machine_.device_labels = config.of<DeviceLabels>();
  machine_.events = std::make_shared<EventLedger>(clock_, kernel::describe);
  machine_.history = &history_;
  machine_.live = &live_;
  if (workloads.book) machine_.workloads = std::make_shared<const WorkloadSettings>(workloads);
  const auto totals = std::make_shared<TotalsBook>();
  state_keeper_ = std::make_shared<StateKeeper>(
      FiguresFolders{paths.state, own_runtime_folder()}, clock_, log_,
      figures_of({totals, workloads.book, workloads.costs, saved_runs_, parts_}));
  // What is kept is of this machine.
  machine_.is_recorded = replays(config);
  DeviceDirectory directory = machine_.is_recorded ? DeviceDirectory(paths.state)
                                                   : state_keeper_->load(clock_.monotonic() + kLoadState);
  forget_simulated(directory, config);
  IndexKeeper indexes(std::move(directory), state_keeper_, clock_);
  fleet_ = std::make_shared<Fleet>(store_, machine_, clock_, log_, std::move(indexes),
                                   fleet_settings_of(config), workloads, totals);
  const auto forget = [fleet = std::weak_ptr<Fleet>(fleet_)](const std::string& uuid) -> Result<Done> {
    const auto alive = fleet.lock();
    return alive ? alive->forget(uuid) : Error("the daemon is stopping");
  };
  control_ = std::make_unique<ControlServer>(paths.state, clock_, log_, forget);
}

void App::start_jobs(std::vector<jobs::PassedSocket> sockets) {
  const auto earlier = saved_runs_->earlier.get();
  saved_runs_->earlier.publish({});
  const Result<Done> resumed = jobs_.resume(earlier->sections, earlier->is_of_this_boot);
  if (!resumed) {
    log_.error("the runs of jobs in figures.state are not understood; they start again",
               {{"error", resumed.error().message()}});
  }
  jobs_.start(std::move(sockets));
}

std::shared_ptr<BusWatcher> App::make_bus_watcher(const config::Config& config) {
  BusWatcher::Reports reports;
  reports.seen = [fleet = std::weak_ptr<Fleet>(fleet_)](const Bus& bus) {
    if (const auto alive = fleet.lock()) alive->order_by(bus.addresses);
  };
  reports.function = [this](const std::string& address, bool answers) {
    if (answers) return log_.info("a PCI function answers again", {{"pci_address", address}});
    log_.warn("a PCI function does not answer; its last result stays in force", {{"pci_address", address}});
  };
  auto watcher = std::make_shared<BusWatcher>(config.of<Paths>().sysfs, config.of<Paths>().procfs, clock_,
                                              std::move(reports));
  watcher->want(has_bus(config));
  return watcher;
}

Result<Done> App::start_http(const HttpSettings& web, const std::vector<systemd::PassedSocket>& passed) {
  auto listeners = open_listeners(web, passed, options_.systemd_socket, paths_.procfs, log_);
  if (!listeners) return listeners.error();
  if (std::ranges::any_of(*listeners, [](const auto& each) { return each.endpoint().is_unix(); })) {
    jobs_.owners().start();
  }
  if (!paths_.api.empty()) add_private_listener(*listeners);
  if (Result<Done> loaded = open_web_config(web); !loaded) return loaded;
  RouteContext context;
  context.web = web;
  context.host = host_name();
  context.build = build_facts();
  context.devices = [this] { return fleet_->devices(); };
  context.unread = [this] { return unread(); };
  context.collectors = [this] { return collector_states(); };
  context.machine = &machine_;
  if (workload_costs_) context.workloads = [costs = workload_costs_] { return costs->workloads(); };
  const auto owner = [this](std::uint32_t uid) { return user_names_.soon(jobs_.owner_of(uid)); };
  context.private_json = {
      {"/api/v1/processes",
       [this, owner] { return jobs::processes_json(*machine_.uses.get(), *machine_.runs.get(), owner); }},
      {"/api/v1/runs", [this] { return jobs::runs_json(*machine_.runs.get()); }}};
  context.served = [keeper = state_keeper_] { keeper->copy_soon(); };
  routes_ = std::make_unique<Routes>(pages_, *store_, std::move(context));
  WebAccess* access = web_config_ ? &web_config_->access() : nullptr;
  constexpr unsigned kThreads = 2;
  auto server = HttpServer::start(*std::move(listeners), *routes_, kThreads, access, &jobs_.owners());
  if (!server) return server.error();
  server_ = *std::move(server);
  for (const Endpoint& endpoint : server_->endpoints()) {
    const bool is_private = endpoint.text() == "unix:" + paths_.api;
    if (is_private) log_.info("listening for programs", {{"path", paths_.api}});
    if (!is_private) log_.info("Listening on", {{"address", endpoint.text()}});
  }
  return Done{};
}

// Only the services need it.
void App::add_private_listener(std::vector<ListenSocket>& listeners) {
  Result<ListenSocket> opened = ListenSocket::open_private(paths_.api);
  if (opened) return listeners.push_back(*std::move(opened));
  log_.info("the services cannot reach the daemon", {{"error", opened.error().message()}});
}

Result<Done> App::open_web_config(const HttpSettings& web) {
  if (web.config_file.empty()) {
    log_.info("TLS is disabled.", {{"http2", "false"}});
    return Done{};
  }
  auto opened = WebConfig::open(web.config_file, clock_, log_);
  if (!opened) return opened.error();
  web_config_ = *std::move(opened);
  return web_config_->start();
}

// Starts the daemon's own threads before the lanes. If the kernel allows only few threads, only devices wait
// for theirs.
Result<Done> App::start_threads() {
  self_report_ = std::make_unique<SelfReport>(
      SelfReport::Sources{clock_, log_, *store_, *fleet_, *bus_watcher_, *server_, *parts_,
                          [this] { return simulates(*config_.get()); },
                          [this] { return config_.get()->of<DeviceOptions>().expected.by_vendor; },
                          web_config_.get(), drm_scans_.get()});
  if (Result<Done> started = start_watchdog(); !started) return started;
  if (Result<Done> started = start_parts(); !started) return started;
  if (!machine_.is_recorded) {
    if (Result<Done> started = control_->start(); !started) return started;
  }
  drm_scans_->start(scheduler_);
  bus_watcher_->start(scheduler_);
  return Done{};
}

// The watchdog only reads clocks and memory, so that it runs whatever hangs. It makes no log write, fsync,
// name lookup, file access or driver call.
Result<Done> App::start_watchdog() {
  static constexpr auto kEvery = std::chrono::milliseconds(200);
  return watchdog_.start("watchdog", [this] {
    fleet_->tick();
    scheduler_.check();
    server_->look();
    return kEvery;
  });
}

// The daemon's own figures are a turn of the scheduler, as all that may wait for the system.
Result<Done> App::start_parts() {
  const auto log_late = [this](bool is_late) {
    if (is_late) log_.error("the daemon's own figures are late: the system does not answer");
  };
  upkeep_ = scheduler_.add({"upkeep", std::chrono::seconds(3), [this] { return keep_up(); }, log_late});
  store_->reserve(catalogue_families(builtin_collectors()));
  parts_->open(machine_.is_recorded ? parts_of_recording() : builtin_parts(), config_.get());
  return scheduler_.start();
}

void App::wait_for_first_pass() {
  const Nanoseconds until = clock_.monotonic() + kFirstPass;
  bool is_over = false;
  while (!is_ready_ && clock_.monotonic() < until) {
    if (!std::exchange(is_over, fleet_->first_pass_over()) && is_over) scheduler_.wake(upkeep_);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  parts_->begin();
}

void App::serve(Signals& signals) {
  systemd::notify_ready(status_line());
  open_hot_plug();
  const auto interval = systemd::watchdog_interval();
  const auto nap =
      interval ? std::min(std::chrono::duration_cast<std::chrono::milliseconds>(*interval / 2), kNap) : kNap;
  while (true) {
    const bool is_well = ping_systemd();
    jobs_.retry();
    if (hot_plug_ && hot_plug_->look_again(clock_.monotonic())) look_for_devices();
    const std::optional<int> signal = next_signal(signals, is_well ? nap : kNextProbe);
    if (signal == SIGTERM || signal == SIGINT) break;
    if (signal) obey(*signal);
  }
  systemd::notify_stopping();
}

void App::open_hot_plug() {
  Result<systemd::HotPlug> opened = systemd::HotPlug::open();
  if (opened) {
    hot_plug_.emplace(*std::move(opened));
  } else {
    log_.info("udev is not available; devices are rediscovered every 60 s",
              {{"error", opened.error().message()}});
  }
}

std::optional<int> App::next_signal(Signals& signals, std::chrono::milliseconds at_most) {
  if (!hot_plug_) return signals.wait(at_most);
  const auto patience = hot_plug_->patience(clock_.monotonic(), at_most);
  return signals.wait(patience, hot_plug_->descriptor());
}

void App::obey(int signal) {
  if (signal == SIGHUP) reload();
  if (signal == SIGUSR1) release_drivers();
  if (signal == SIGUSR2) fleet_->restore();
}

void App::reload() {
  const Nanoseconds begun = clock_.monotonic();
  systemd::notify_reloading(std::chrono::duration_cast<std::chrono::microseconds>(begun));
  const std::vector<std::string> problems = read_config_again();
  systemd::notify_ready(status_line());
  // After READY=1, so that the service is running again when `systemctl reload` returns. The runtime folder
  // is in memory, so this write cannot hang.
  const Result<Done> written = write_outcome(runtime_folder(), {getpid(), begun, problems});
  if (!written) {
    log_.debug("the outcome of the reload cannot be written; gpumeter --reload reports no outcome",
               {{"error", written.error().message()}});
  }
}

void App::release_drivers() {
  const bool released = fleet_->release(kReleased);
  if (released) return log_.info("drivers are closed until SIGUSR2, for at most 10 minutes");
  log_.error("drivers are not closed: a call is still under way; devices are read again");
}

// Also requests a bus scan, because gpumeter_pci_devices counts cards that leave or join the bus.
void App::look_for_devices() {
  fleet_->rediscover();
  bus_watcher_->request();
}

// systemd restarts a daemon that sends no ping; a hung driver call is no reason for a restart. Returns false
// if the watchdog's thread or a listener does not answer.
bool App::ping_systemd() {
  systemd::notify_status(status_line());
  if (!systemd::watchdog_interval()) return true;
  if (clock_.monotonic() - watchdog_.last_turn() > kStuckWatchdog) return false;
  if (const Result<Done> answer = server_->probe(kProbe); !answer) {
    log_.error("a listener does not answer", {{"error", answer.error().message()}});
    return false;
  }
  systemd::notify_watchdog();
  return true;
}

std::string App::status_line() const {
  const std::vector<DeviceStatus> devices = fleet_->devices();
  const auto up = std::count_if(devices.begin(), devices.end(), [](const auto& device) { return device.up; });
  return std::to_string(up) + " of " + std::to_string(devices.size()) + " GPUs are read";
}

std::vector<std::string> App::read_config_again() {
  std::vector<std::string> problems = problems_of_reload();
  for (const std::string& problem : problems) {
    log_.error("configuration not reloaded", {{"error", problem}});
  }
  if (problems.empty()) log_.info("configuration reloaded");
  self_report_->reloaded(problems.empty());
  return problems;
}

std::vector<std::string> App::problems_of_reload() {
  std::vector<std::string> problems;
  std::vector<std::string> notes;
  const config::Loaded loaded = load_checked(options_, clock_, known_users_, notes);
  for (const std::string& note : notes) log_.warn(note);
  for (const options::Problem& problem : loaded.problems) problems.push_back(to_string(problem));
  if (!problems.empty()) return problems;
  for (const std::string& key : config::restart_needed(schema(), *config_.get(), loaded.config)) {
    problems.push_back(key + " needs a restart");
  }
  if (problems.empty() && web_config_ != nullptr) problems = web_config_->reload();
  if (problems.empty()) apply(loaded.config);
  return problems;
}

void App::apply(const config::Config& wanted) {
  const std::shared_ptr<const config::Config> old = config_.replace(wanted);
  log_.configure(wanted.of<Logging>());
  const auto& selection = wanted.of<PageSelection>();
  if (old->of<PageSelection>() != selection) pages_.select(selection);
  fleet_->configure(fleet_settings_of(wanted));
  jobs_.configure({wanted.of<jobs::Limits>(), wanted.of<jobs::Settings>().users});
  bus_watcher_->want(has_bus(wanted));
  parts_->reload(config_.get(), clock_.monotonic() + kStopPart);
  for (const CollectorEntry& entry : builtin_collectors()) {
    const std::string name(entry.name);
    const bool same = old->collectors.at(name).options == wanted.collectors.at(name).options;
    const bool was_on = is_enabled(entry, *old);
    const bool is_on = is_enabled(entry, wanted);
    if (was_on && (!is_on || !same)) fleet_->remove(name, clock_.monotonic() + kStopCollector);
    if (is_on && (!was_on || !same))
      fleet_->add({{&entry, context_of(wanted, entry, clock_, machine_.drm_users, machine_.events)}});
  }
}

void App::stop() {
  const Nanoseconds deadline = clock_.monotonic() + kStop;
  if (server_) server_->stop();
  watchdog_.stop();
  left_behind_ = !jobs_.stop();
  if (control_ && !control_->stop(deadline)) left_behind_ = true;
  if (fleet_ && !fleet_->stop(deadline)) left_behind_ = true;
  if (!scheduler_.stop(deadline)) left_behind_ = true;
  if (web_config_ && !web_config_->stop(deadline)) left_behind_ = true;
  if (state_keeper_ && !state_keeper_->stop(clock_.monotonic() + kLastState)) left_behind_ = true;
  left_behind_ = left_behind_ || user_names_.hangs() || known_users_.hangs();
}

// The daemon is ready when the page has all of the first pass. This may be late, because a device that hangs
// has its own deadline.
Nanoseconds App::keep_up() {
  constexpr Nanoseconds kEvery = std::chrono::seconds(1);
  constexpr Nanoseconds kUntilPartsBegin = std::chrono::milliseconds(10);
  const bool is_first_pass_over = fleet_->first_pass_over();
  self_report_->publish();
  if (!is_first_pass_over) return kEvery;
  parts_->begin();
  if (!is_ready_ && !parts_->have_begun()) return kUntilPartsBegin;
  if (!says_what_is_read_ && bus_watcher_->bus()) {
    says_what_is_read_ = true;
    say_if_nothing_is_read();
  }
  routes_->set_ready();
  is_ready_ = true;
  return kEvery;
}

// An enabled collector has already logged why it does not read its cards.
void App::say_if_nothing_is_read() {
  if (machine_.is_recorded || !fleet_->devices().empty()) return;
  const std::vector<UnreadDevice> unread = this->unread();
  if (unread.empty()) return log_.info("no GPU is read: the PCI bus shows none");
  const auto is_logged = [this](const UnreadDevice& each) {
    return fleet_->collector_errors().contains(each.vendor);
  };
  if (std::ranges::any_of(unread, is_logged)) return;
  std::string list;
  for (const UnreadDevice& each : unread) list += (list.empty() ? "" : " | ") + to_string(each);
  log_.info("no GPU is read", {{"unread", list}});
}

std::vector<UnreadDevice> App::unread() const {
  const auto config = config_.get();
  const std::map<std::string, std::string> errors = fleet_->collector_errors();
  std::map<std::string, CollectorTrouble> troubles;
  for (const CollectorEntry& entry : builtin_collectors()) {
    const std::string name(entry.name);
    const auto error = errors.find(name);
    troubles[name] = {is_enabled(entry, *config), error == errors.end() ? "" : error->second};
  }
  return unread_devices(bus_watcher_->bus().value_or(Bus()), fleet_->devices(), troubles);
}

std::vector<CollectorState> App::collector_states() const {
  const auto config = config_.get();
  std::vector<CollectorState> states;
  for (const CollectorEntry& entry : builtin_collectors()) {
    states.push_back({std::string(entry.name), is_enabled(entry, *config)});
  }
  return states;
}

}  // namespace gpumeter
