#pragma once

#include <memory>

#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/attribution/workload_book.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/state/device_totals.hpp"
#include "daemon/state/figures_file.hpp"

namespace gpumeter {

/// The objects whose figures survive a restart.
struct FigureOwners {
  std::shared_ptr<TotalsBook> totals;
  std::shared_ptr<workloads::WorkloadBook> workloads;  ///< null: workloads are disabled, and so is `costs`
  std::shared_ptr<workloads::CostLedger> costs;
  std::shared_ptr<RunsShelf> runs;
  std::shared_ptr<PartHost> parts;
};

/// The sections of figures.state. A section of a part that is disabled is dropped.
KeptFigures figures_of(FigureOwners owners);

}  // namespace gpumeter
