#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.hpp"
#include "collectors/events/line.hpp"

namespace gpumeter::kernel {

/// Finds XIDs that come back at one place within a day while no other place of the machine has them. That
/// points at the hardware; an error that moves between places is a program's. The rules, bursts and bits are
/// those of NVIDIA/NVSentinel, docs/configuration/health-events-analyzer.md. Times are since 1970. One
/// thread.
class Repetition {
 public:
  struct Found {
    std::string pci_address;
    unsigned code;
    std::string text;  ///< "XID 13 twice within 24 h on GPC 1 TPC 3"
  };

  /// Takes an event of the log, in the order of the log. `gpus`: of the machine. An old event is remembered
  /// and found no more.
  void take(const events::Event& event, Nanoseconds time, std::size_t gpus, bool is_old);
  /// The places that have had a further burst. A burst is judged at its end: its first line does not say
  /// whether other places follow.
  std::vector<Found> found(Nanoseconds now);

 private:
  using Place = std::tuple<unsigned, std::string, std::string>;  ///< code, PCI address, part of the GPU

  bool is_elsewhere(const Place& place, Nanoseconds now) const;

  std::map<Place, Nanoseconds> last_;   ///< when each place had its last event
  std::map<Place, Nanoseconds> judge_;  ///< when the further bursts end
};

}  // namespace gpumeter::kernel
