#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/worker.hpp"
#include "collectors/attribution/names/known_users.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/ingest.hpp"
#include "config/load.hpp"
#include "daemon/bus/hot_plug.hpp"
#include "daemon/bus/watcher.hpp"
#include "daemon/cli/options.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/fleet/state_keeper.hpp"
#include "daemon/log/log.hpp"
#include "daemon/self/report.hpp"
#include "daemon/self/workload_info.hpp"
#include "daemon/setup.hpp"
#include "daemon/signals.hpp"
#include "exporter/http/server.hpp"
#include "systemd/listen_fds.hpp"

namespace gpumeter {

/// The daemon: builds its parts in order, serves until a signal ends it, takes them down in reverse. The main
/// thread runs all of it, but for what says otherwise; it makes no call that may hang in a driver.
class App {
 public:
  App(Options options, config::Config config, const Clock& clock);

  /// The process's exit code. Where a call hangs at the end, the process must leave by _exit(): see
  /// left_behind().
  int run();

  /// Some thread is stuck in a driver, the state folder or the log, and still uses what this object owns.
  bool left_behind() const noexcept { return left_behind_; }

 private:
  int serve_until_told();
  Result<Done> start();
  DeviceDirectory open_directory() GPUMETER_REQUIRES(mutex_);
  Result<std::vector<ListenSocket>> open_listeners() GPUMETER_REQUIRES(mutex_);
  Result<std::vector<ListenSocket>> adopt_listeners() GPUMETER_REQUIRES(mutex_);
  void warn_of_unused_addresses(std::span<const ListenSocket> sockets) GPUMETER_REQUIRES(mutex_);
  Result<Done> start_http() GPUMETER_REQUIRES(mutex_);
  void wait_for_first_pass();
  void serve(Signals& signals);
  void obey(int signal);
  void hear_of_hot_plug();
  void reload();
  std::optional<config::Config> load_anew(std::vector<std::string>& problems);
  void apply(const config::Config& wanted);
  void answer_reload(Nanoseconds begun, const std::vector<std::string>& problems);
  void release_drivers();
  void look_for_devices();
  bool pet_systemd();
  std::string status_line() const;
  void stop();

  Result<Done> start_threads();
  Result<Done> start_watchdog();
  Result<Done> start_upkeep();
  std::shared_ptr<BusWatcher> make_bus_watcher() GPUMETER_REQUIRES(mutex_);
  std::vector<CollectorState> collector_states() const;            ///< threads of HTTP
  void keep_up();                                                  ///< thread "upkeep"

  const Options options_;
  const Clock& clock_;
  Log log_;

  mutable Mutex mutex_;
  config::Config config_ GPUMETER_GUARDED_BY(mutex_);

  const std::shared_ptr<Store> store_;
  PageCache pages_;
  jobs::UserNames user_names_;
  jobs::KnownUsers known_users_{clock_};
  std::shared_ptr<workloads::WorkloadBook> workload_book_;  // null where workloads are switched off
  std::shared_ptr<StateKeeper> state_keeper_;
  std::shared_ptr<Fleet> fleet_;
  std::unique_ptr<Routes> routes_;
  std::unique_ptr<HttpServer> server_;
  Worker watchdog_{clock_};
  std::shared_ptr<BusWatcher> bus_watcher_;
  std::unique_ptr<WorkloadInfo> workload_info_;  // of upkeep
  std::unique_ptr<SelfReport> self_report_;
  Worker upkeep_{clock_};
  std::atomic<bool> is_ready_ = false;  // the first pass is over, and the page has it
  systemd::PassedSockets passed_;
  jobs::Ingest jobs_;
  std::optional<HotPlug> hot_plug_;
  bool left_behind_ = false;
};

}  // namespace gpumeter
