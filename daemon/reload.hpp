#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/ingest.hpp"
#include "config/config.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/cli/options.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/self/report.hpp"
#include "daemon/web/web_config.hpp"
#include "exporter/text/page.hpp"

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

/// The result of a reload, for the command that requested it. A signal has no reply, so the daemon writes the
/// result to a file in its runtime folder.

struct ReloadOutcome {
  pid_t daemon = 0;
  Nanoseconds begun{};                ///< CLOCK_MONOTONIC, before the configuration was read
  std::vector<std::string> problems;  ///< one line each; empty: the configuration is in force
};

/// Returns systemd's $RUNTIME_DIRECTORY, the first of several folders; empty if the variable is not set. No
/// other daemon has the same one.
std::string own_runtime_folder();

/// Returns own_runtime_folder(), or /run/gpumeter if there is none.
std::string runtime_folder();

/// Replaces the previous outcome atomically, by a rename. Does not sync, because the file need not survive a
/// restart of the machine.
Result<Done> write_outcome(const std::string& folder, const ReloadOutcome& outcome);

/// Returns nullopt if no outcome exists or the file cannot be read.
std::optional<ReloadOutcome> read_outcome(const std::string& folder);

/// Sends SIGHUP to a daemon and waits for the outcome of a reload that began after the signal. Returns an
/// Error if the signal was not sent, the daemon ended, or no outcome appeared within `patience`.
Result<ReloadOutcome> request_reload(pid_t daemon, const std::string& folder, const Clock& clock,
                                     Nanoseconds patience);

/// Applies a changed configuration while the daemon runs. Main thread.
class Reload {
 public:
  /// All must outlive this object.
  struct Parts {
    const Options& options;
    const Clock& clock;
    Log& log;
    RunningConfig& config;
    jobs::KnownUsers& users;
    jobs::Ingest& jobs;
    Fleet& fleet;
    BusWatcher& bus;
    SelfReport& report;
    WebConfig* web;  ///< null: no web configuration
    const std::shared_ptr<DrmUsers>& drm_users;
    PageCache& pages;
    PartHost& periodic;
  };

  explicit Reload(Parts parts) : parts_(parts) {}

  /// Reads the configuration again and puts it in force. If the configuration is wrong or needs a restart,
  /// the old one stays in force. Returns the problems, one line each. Waits for the name service and for
  /// collectors that stop, a few seconds at most.
  std::vector<std::string> run();

 private:
  std::vector<std::string> reload();
  void apply(const config::Config& wanted);

  const Parts parts_;
};

}  // namespace gpumeter
