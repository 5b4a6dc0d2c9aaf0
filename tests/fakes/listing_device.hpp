#pragma once

#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/api/process_list.hpp"

namespace gpumeter {

/// The next answers of a ScriptedListing; a test changes them between passes.
struct ListingScript {
  double energy = 0;
  bool has_energy = true;
  std::vector<DeviceProcess> processes;
  ReadStatus status = ReadStatus::ok;
  PassOutcome outcome = PassOutcome::complete;
  Tier tier = Tier::fast;  ///< of the list
  int lists = 0;           ///< number of calls to processes()
  Nanoseconds elapsed{};   ///< given to the last call
};

/// A device with an energy counter and a list of processes, both from the script.
class ScriptedListing final : public Device, public ListsProcesses {
 public:
  explicit ScriptedListing(ListingScript& script) : script_(script) {}

  Result<Done> attach(const DeviceInfo&) override { return Done{}; }
  std::span<const SeriesSpec> series() const override { return series_; }
  void release() noexcept override {}
  PassOutcome sample(const Pass&, SampleSink& sink) noexcept override {
    if (script_.has_energy) {
      sink.set(0, script_.energy);
    } else {
      sink.miss(0, ReadStatus::failed);
    }
    return script_.outcome;
  }
  Tier processes_tier() const noexcept override { return script_.tier; }
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept override {
    ++script_.lists;
    script_.elapsed = pass.elapsed;
    out = script_.processes;
    return script_.status;
  }

 private:
  ListingScript& script_;
  const std::vector<SeriesSpec> series_ = {{&catalog::energy_joules, {}}};
};

}  // namespace gpumeter
