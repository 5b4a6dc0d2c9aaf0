#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "daemon/fleet.hpp"
#include "daemon/hot_plug.hpp"
#include "daemon/jobs/job_service.hpp"
#include "daemon/jobs/known_users.hpp"
#include "daemon/jobs/run_join.hpp"
#include "daemon/jobs/user_names.hpp"
#include "daemon/log.hpp"
#include "daemon/options.hpp"
#include "daemon/setup.hpp"
#include "daemon/signals.hpp"
#include "daemon/state_keeper.hpp"
#include "daemon/watchdog.hpp"
#include "exporter/http_server.hpp"
#include "systemd/listen_fds.hpp"

namespace gpumeter {

/// The daemon: builds its parts in order, serves until a signal ends it, takes them down in reverse. All
/// methods run on the main thread, but for publish_self(), which is the watchdog's.
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
  void look_at_bus();
  bool pet_systemd();
  std::string status_line() const;
  std::vector<CollectorState> collector_states() const;
  void publish_self();
  void join_runs(const jobs::JobSnapshot& jobs, SeriesSet& out);
  void stop();

  const Options options_;
  const Clock& clock_;
  Log log_;

  mutable Mutex mutex_;
  config::Config config_ GPUMETER_GUARDED_BY(mutex_);
  bool reload_ok_ GPUMETER_GUARDED_BY(mutex_) = true;
  Nanoseconds reloaded_at_ GPUMETER_GUARDED_BY(mutex_);
  Bus bus_ GPUMETER_GUARDED_BY(mutex_);

  const std::shared_ptr<Registry> registry_;
  PageCache pages_;
  jobs::UserNames user_names_;
  jobs::KnownUsers known_users_{clock_};
  std::shared_ptr<workloads::WorkloadBook> workload_book_;  // null where workloads are switched off
  std::shared_ptr<StateKeeper> state_keeper_;
  std::shared_ptr<Fleet> fleet_;
  std::unique_ptr<Routes> routes_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Watchdog> watchdog_;
  systemd::PassedSockets passed_;
  jobs::RunJoin run_join_;  // of the thread that publishes jobs
  jobs::JobService jobs_;
  std::optional<HotPlug> hot_plug_;
  Nanoseconds bus_seen_at_{};
  bool left_behind_ = false;
};

}  // namespace gpumeter
