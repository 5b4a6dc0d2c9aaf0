#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/program.hpp"
#include "base/scheduler.hpp"
#include "base/worker.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/ingest.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/cli/options.hpp"
#include "daemon/control/server.hpp"
#include "daemon/drm/scans.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/fleet/state_keeper.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/self/report.hpp"
#include "daemon/state/figures_file.hpp"
#include "daemon/web/web_config.hpp"
#include "exporter/history/history.hpp"
#include "exporter/http/server.hpp"
#include "exporter/web/live_answers.hpp"
#include "systemd/hot_plug.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {

/// The configuration in force. Any thread.
class RunningConfig {
 public:
  explicit RunningConfig(config::Config config) { replace(std::move(config)); }

  std::shared_ptr<const config::Config> get() const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return config_;
  }

  /// Returns the previous configuration.
  std::shared_ptr<const config::Config> replace(config::Config wanted) GPUMETER_EXCLUDES(mutex_) {
    auto config = std::make_shared<const config::Config>(std::move(wanted));
    const MutexLock lock(mutex_);
    return std::exchange(config_, std::move(config));
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const config::Config> config_ GPUMETER_GUARDED_BY(mutex_);
};

/// The daemon: builds its parts in order, serves until a signal ends it, and stops the parts in reverse
/// order. The main thread runs everything except where a comment names another thread. The main thread makes
/// no call that may hang in a driver.
class App {
 public:
  App(Options options, config::Config config, const Clock& clock);

  /// Returns the process's exit code. See left_behind().
  int run(Signals& signals);

  /// True if a thread hangs in a driver, the state folder or the log and still uses data that this object
  /// owns. The process must then end by _exit().
  bool left_behind() const noexcept { return left_behind_; }

 private:
  Result<Done> start();
  void make_fleet(const config::Config& config);
  void start_jobs(std::vector<jobs::PassedSocket> sockets);
  Result<Done> start_http(const HttpSettings& web, const std::vector<systemd::PassedSocket>& passed);
  void add_private_listener(std::vector<ListenSocket>& listeners);
  Result<Done> open_web_config(const HttpSettings& web);
  Result<Done> start_threads();
  Result<Done> start_watchdog();
  Result<Done> start_parts();
  std::shared_ptr<BusWatcher> make_bus_watcher(const config::Config& config);
  void wait_for_first_pass();

  /// Reports to systemd that the daemon is ready, and serves until SIGTERM or SIGINT.
  void serve(Signals& signals);
  void open_hot_plug();
  std::optional<int> next_signal(Signals& signals, std::chrono::milliseconds at_most);
  void obey(int signal);
  void release_drivers();
  void look_for_devices();
  bool ping_systemd();
  std::string status_line() const;

  void reload();
  /// Reads the configuration again and puts it in force. If the configuration is wrong or needs a restart,
  /// the old one stays in force. Returns the problems, one line each. Waits for the name service and for
  /// collectors that stop, a few seconds at most.
  std::vector<std::string> read_config_again();
  std::vector<std::string> problems_of_reload();
  void apply(const config::Config& wanted);

  void stop();

  std::vector<CollectorState> collector_states() const;  ///< on HTTP's threads
  std::vector<UnreadDevice> unread() const;              ///< on HTTP's threads and in keep_up()
  void say_if_nothing_is_read();                         ///< in keep_up()
  Nanoseconds keep_up();                                 ///< a turn of the scheduler

  const Options options_;
  const Clock& clock_;
  RunningConfig config_;
  Log log_;
  const std::shared_ptr<Store> store_;
  const Paths paths_;
  Machine machine_;
  PageCache pages_;
  History history_;
  LiveAnswers live_;
  jobs::UserNames user_names_;
  jobs::KnownUsers known_users_{clock_};
  std::shared_ptr<workloads::CostLedger> workload_costs_;  // null if workloads are disabled
  const std::shared_ptr<RunsShelf> saved_runs_ = std::make_shared<RunsShelf>();
  std::shared_ptr<StateKeeper> state_keeper_;
  std::shared_ptr<Fleet> fleet_;
  std::shared_ptr<DrmScans> drm_scans_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<WebConfig> web_config_;  // null: no such file is configured
  std::unique_ptr<Routes> routes_;
  std::unique_ptr<HttpServer> server_;
  Scheduler scheduler_{clock_};
  const std::shared_ptr<PartHost> parts_;  // shared with the thread "state"
  Worker watchdog_{clock_};
  std::shared_ptr<BusWatcher> bus_watcher_;
  std::optional<systemd::HotPlug> hot_plug_;  // of the main thread, as all of serve()
  std::unique_ptr<SelfReport> self_report_;
  Scheduler::Id upkeep_ = 0;            // keep_up()
  bool says_what_is_read_ = false;      // used by keep_up()
  std::atomic<bool> is_ready_ = false;  // the first pass is over and on the page
  jobs::Ingest jobs_;
  bool left_behind_ = false;
};

}  // namespace gpumeter
