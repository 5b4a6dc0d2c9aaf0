#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/ingest.hpp"
#include "daemon/bus/watcher.hpp"
#include "daemon/cli/options.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/running_config.hpp"
#include "daemon/self/report.hpp"
#include "daemon/web/web_config.hpp"
#include "exporter/text/page.hpp"

namespace gpumeter {

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
