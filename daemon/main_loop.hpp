#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/program.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/intake/ingest.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/bus/hot_plug.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/reload.hpp"
#include "exporter/http/server.hpp"

namespace gpumeter {

/// The main thread's work after the start of all parts: signals, hot plug, and messages to systemd. The loop
/// makes no call that may hang in a driver.
class MainLoop {
 public:
  /// All must outlive this object.
  struct Parts {
    const Clock& clock;
    Log& log;
    Signals& signals;
    Fleet& fleet;
    BusWatcher& bus;
    jobs::Ingest& jobs;
    HttpServer& server;
    const Worker& watchdog;
    Reload& reload;
  };

  explicit MainLoop(Parts parts) : parts_(parts) {}

  /// Reports to systemd that the daemon is ready, and serves until SIGTERM or SIGINT.
  void run();

 private:
  void open_hot_plug();
  std::optional<int> next_signal(std::chrono::milliseconds at_most);
  void obey(int signal);
  void reload();
  void release_drivers();
  void look_for_devices();
  bool ping_systemd();
  std::string status_line() const;

  const Parts parts_;
  std::optional<HotPlug> hot_plug_;
};

}  // namespace gpumeter
