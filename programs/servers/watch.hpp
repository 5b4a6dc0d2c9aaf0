#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/part.hpp"
#include "exporter/store/series_list.hpp"
#include "programs/servers/energy.hpp"
#include "programs/servers/finder.hpp"
#include "programs/servers/reading.hpp"

namespace gpumeter::servers {

/// Reads the metrics pages of the model servers and writes ml_server_*. Rebuilds its series each time, so
/// that a histogram whose bounds change with a new version of the server leaves no bucket behind. A turn
/// waits for each server's answer.
class Watch final : public Part {
 public:
  struct Notice {
    std::string message, server, error;  ///< an empty error: it works again
  };
  /// What tests replace.
  struct Outside {
    std::function<Result<std::string>(const Target&)> fetch;  ///< blocks for 2 s at most
    std::function<void(const Notice&)> say;
    Finder::Listeners listeners = tcp::listeners;
  };
  Watch(const PartContext& context, Outside outside);

  /// Pages of further servers than kMostServers are not read.
  Nanoseconds turn(Nanoseconds now) override;

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
  const Nanoseconds interval_;
  const Machine& machine_;
  const Outside outside_;
  jobs::ProcessKin kin_;
  std::optional<Finder> finder_;
  ServerEnergy energy_;
  SeriesList series_;
  std::string find_error_;
  std::map<std::string, Server> servers_;  ///< by host and port
};

/// `servers`: null if the configuration names no server and does not look for any.
extern const PartEntry kPart;

}  // namespace gpumeter::servers
