#pragma once

#include <memory>
#include <utility>

#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/attribution/workload_book.hpp"
#include "collectors/jobs/intake/ingest.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/state/device_totals.hpp"
#include "daemon/state/figures_file.hpp"

namespace gpumeter {

/// The objects whose figures survive a restart, and their sections of figures.state. A section of a part that
/// is disabled is dropped.
struct FigureOwners {
  static constexpr const char* kDevices = "devices";
  static constexpr const char* kWorkloads = "workloads";

  std::shared_ptr<TotalsBook> totals;
  std::shared_ptr<workloads::WorkloadBook> workloads;  ///< null: workloads are disabled, and so is `costs`
  std::shared_ptr<workloads::CostLedger> costs;
  std::shared_ptr<RunsShelf> runs;
  std::shared_ptr<PartHost> parts;

  Result<Done> restore(const SavedState& state) const {
    if (Result<Done> loaded = totals->load(state.section(kDevices)); !loaded) return loaded;
    StateSections of_runs;
    for (const char* const name : jobs::Ingest::kSections) of_runs[name] = state.section(name);
    if (state.is_of_this_boot) runs->now.publish(of_runs);
    runs->earlier.publish({.sections = std::move(of_runs), .is_of_this_boot = state.is_of_this_boot});
    parts->resume(state.sections, state.is_of_this_boot);
    if (!costs) return Done{};
    return costs->load(state.section(kWorkloads), state.saved_at, state.is_of_this_boot);
  }

  /// The workloads come first: the device's counter is then not below the one that they add up to.
  StateSections collect() const {
    StateSections sections = parts->sections();
    if (costs) sections[kWorkloads] = costs->save(*workloads);
    sections[kDevices] = totals->save();
    sections.merge(StateSections(*runs->now.get()));
    return sections;
  }
};

inline KeptFigures figures_of(FigureOwners owners) {
  const auto shared = std::make_shared<const FigureOwners>(std::move(owners));
  return {[shared](const SavedState& state) { return shared->restore(state); },
          [shared] { return shared->collect(); }};
}

}  // namespace gpumeter
