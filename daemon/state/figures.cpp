#include "daemon/state/figures.hpp"

#include <utility>

namespace gpumeter {
namespace {

constexpr const char* kDevices = "devices";
constexpr const char* kWorkloads = "workloads";
constexpr const char* kRuns = "runs";
constexpr const char* kJoin = "runs_on_devices";
constexpr const char* kBenchmarks = "benchmarks";

Result<Done> restore(const FigureOwners& owners, const SavedState& state) {
  if (Result<Done> loaded = owners.totals->load(state.section(kDevices)); !loaded) return loaded;
  owners.runs->put_earlier(
      {{state.section(kRuns), state.section(kJoin), state.section(kBenchmarks)}, state.is_of_this_boot});
  owners.parts->resume(state.sections, state.is_of_this_boot);
  if (!owners.costs) return Done{};
  return owners.costs->load(state.section(kWorkloads), state.saved_at, state.is_of_this_boot);
}

// The workloads come first: the device's counter is then not below the one that they add up to.
StateSections collect(const FigureOwners& owners) {
  StateSections sections = owners.parts->sections();
  if (owners.costs) sections[kWorkloads] = owners.costs->save(*owners.workloads);
  sections[kDevices] = owners.totals->save();
  jobs::SavedRuns runs = owners.runs->get();
  sections[kRuns] = std::move(runs.model);
  sections[kJoin] = std::move(runs.join);
  sections[kBenchmarks] = std::move(runs.benchmarks);
  return sections;
}

}  // namespace

KeptFigures figures_of(FigureOwners owners) {
  const auto shared = std::make_shared<const FigureOwners>(std::move(owners));
  return {[shared](const SavedState& state) { return restore(*shared, state); },
          [shared] { return collect(*shared); }};
}

}  // namespace gpumeter
