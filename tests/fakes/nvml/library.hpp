#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/nvidia/nvml/abi.hpp"
#include "tests/fakes/nvml/clock.hpp"
#include "tests/fakes/nvml/scenario.hpp"

namespace gpumeter::fake_nvml {

struct EventSetState;
struct GpmSampleState;

/// The state of the library between calls. It is never destroyed, because a hanging call may outlive main().
class Library {
 public:
  static Library& instance();

  unsigned init();
  unsigned shutdown();
  void reload();

  void violation(const std::string& what);

  /// Waits until the end of the window, by the fake clock or by its length in real time, or until a reload.
  void hang(const Window& window);

  // Constant after construction, or synchronised by itself.
  Clock clock;

  // Guarded by `mutex`.
  std::mutex mutex;
  std::condition_variable changed;  ///< notified by a new time, a reload, or a freed event set
  std::shared_ptr<const Scenario> scenario;
  std::vector<std::size_t> visible;  ///< devices present at init, by index
  unsigned inits = 0, generation = 0, reloads = 0, under_way = 0;
  std::map<std::string, std::uint64_t, std::less<>> calls;
  std::string violations, told;  ///< told: the text last returned to the caller
  std::uint64_t next_id = 1;     ///< next id of an event set or a sample
  std::map<std::uint64_t, std::shared_ptr<EventSetState>> event_sets;
  std::map<std::uint64_t, std::shared_ptr<GpmSampleState>> samples;
  std::set<std::uint64_t> freed;

 private:
  Library() = default;
  unsigned first_init();
  void report() const;
};

}  // namespace gpumeter::fake_nvml
