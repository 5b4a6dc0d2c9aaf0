#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/servers/energy.hpp"
#include "collectors/servers/finder.hpp"
#include "collectors/servers/reading.hpp"
#include "exporter/client/http_get.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::servers {

/// Requests a page of a model server: one GET, at most 2 s and 8 MiB, no redirects. Blocks.
Result<std::string> fetch(const Target& target);

/// Reads the metrics pages of the model servers and writes ml_server_*. Rebuilds its series each time, so
/// that a histogram whose bounds change with a new version of the server leaves no bucket behind. One thread;
/// update() blocks while a server answers.
class Watch {
 public:
  struct Notice {
    std::string message, server, error;  ///< an empty error: it works again
  };
  struct Parts {
    std::function<jobs::DeviceUses()> device_uses;
    std::function<Result<std::string>(const Target&)> fetch;
    std::function<void(const Notice&)> say;
    Finder::Listeners listeners = tcp::listeners;
    Finder::Roots roots = {};
  };

  Watch(Settings settings, Parts parts, Source source);

  /// Reads every page. Pages of further servers than kMostServers are not read.
  void update(Nanoseconds now);

  static constexpr std::size_t kMostServers = 32;

 private:
  struct Server {
    Target target;
    Place place;
    bool is_named = false;  ///< by the configuration
    std::string kind;       ///< of its last page
    std::string model;
    std::string error;  ///< of the last read; empty: it succeeded
    bool is_present = false;
    std::optional<ServerReading> reading;
  };

  void note(const Target& target, const Place& place, bool is_named);
  void find_places(const jobs::DeviceUses& devices);
  void read(Server& server);
  void write(const Server& server);
  void write_facts(const Server& server, const Labels& labels);
  void write_figures(const ServerReading& reading, const Labels& labels);
  void write_histogram(const ServerHistogram& histogram, const Labels& labels);

  const Settings settings_;
  const Parts parts_;
  jobs::ProcessKin kin_;
  std::optional<Finder> finder_;
  ServerEnergy energy_;
  SeriesList series_;
  std::string find_error_;
  std::map<std::string, Server> servers_;  ///< by host and port
};

}  // namespace gpumeter::servers
