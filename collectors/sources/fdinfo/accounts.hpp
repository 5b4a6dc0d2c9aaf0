#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/sources/fdinfo/client.hpp"
#include "collectors/sources/fdinfo/engine_sums.hpp"

namespace gpumeter::fdinfo {

/// A process that held DRM descriptors at the last look.
struct Holder {
  std::uint64_t start_ticks = 0;
  Nanoseconds at{};       ///< CLOCK_MONOTONIC, of the look
  bool is_fresh = false;  ///< looked at in the scan that ends
  bool is_new = false;    ///< started after the previous scan
  std::vector<Client> clients;
};

/// The use of one device, from the clients of its holders at each scan. A client that several processes hold
/// counts once, for the lowest pid. A client counts from the reading with which it was first seen; only a
/// client of a process that started after the previous scan counts from 0. One thread.
class DeviceAccount {
 public:
  using Holders = std::map<int, Holder>;  // by pid

  /// Takes the state after a scan. `has_read_all`: all holders are fresh.
  void take(const std::string& device, const Holders& holders, Nanoseconds now, bool has_read_all);

  /// The time before the next scan is not observed, and all clients count from their next reading.
  void interrupt() noexcept;

  /// The state after the last scan.
  DrmUse use(unsigned inaccessible) const;

 private:
  struct Id {
    std::uint64_t number = 0;  ///< the driver's; without one, the descriptor of the first holder
    int pid = 0;               ///< 0 for the driver's
    auto operator<=>(const Id&) const = default;
  };
  struct Reading {
    int owner = 0;
    Nanoseconds at{};
    bool is_fresh = false;
    bool is_new = false;
    Client client;
  };
  struct Count {
    bool in_cycles = false;
    std::uint64_t count = 0;
    std::uint64_t total_cycles = 0;
    Nanoseconds at{};
  };
  using Known = std::map<std::size_t, Count>;  // a client's engines, by place in kEngineNames
  struct User {
    std::uint64_t start_ticks = 0;
    bool is_present = false;
    EngineSums busy;
    ClientMemory memory;
  };

  std::map<Id, Reading> merged(const std::string& device, const Holders& holders) const;
  Id id_of(const std::map<Id, Reading>& so_far, int pid, const Client& client) const;
  void learn_clocks(const std::map<Id, Reading>& readings);
  void count(const Id& id, const Reading& reading, User& user);
  std::optional<double> seconds_of(const EngineCount& now, const Count* before, bool from_zero) const;

  std::map<Id, Known> known_;
  std::map<int, User> users_;  // by pid
  EngineSums busy_;
  std::array<double, kEngineNameCount> seconds_per_cycle_{};  // 0: unknown
  Nanoseconds now_{};
  Nanoseconds observed_{};
  std::optional<Nanoseconds> complete_;  // the last scan that had read all holders
};

}  // namespace gpumeter::fdinfo
