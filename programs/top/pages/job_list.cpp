#include "programs/top/pages/job_list.hpp"

#include "programs/top/layout/format.hpp"

namespace gpumeter::top {
namespace {

/// "4.02/s", or requests for a run that makes no steps: "12.3 req/s".
std::string rate_text(const Run& run) {
  if (run.step_rate) return short_text(run.step_rate) + "/s";
  return run.request_rate ? short_text(run.request_rate) + " req/s" : std::string(kAbsent);
}

/// "data_loading 50ms": the time of a step that the phase takes.
std::string phase_text(const Run& run) {
  if (run.phase.empty()) return std::string(kAbsent);
  if (!run.phase_seconds) return run.phase;
  const bool is_short = *run.phase_seconds < 1;
  return run.phase + " " +
         (is_short ? number_text(run.phase_seconds, 0, 1e-3) + "ms" : short_text(run.phase_seconds) + "s");
}

Cell state_cell(const Run& run) {
  if (run.status.empty()) return {"running"};
  return {run.status, run.status == "success" ? Style::dim : Style::warning};
}

std::string energy_text(Number joules) {
  return joules ? short_text(*joules / 3.6e6) + " kWh" : std::string(kAbsent);
}

std::vector<Cell> cells_of(const Run& run) {
  return {{run.name},
          {run.user},
          state_cell(run),
          {number_text(run.step ? run.step : run.steps)},
          {rate_text(run)},
          {short_text(run.loss)},
          {phase_text(run)},
          {age_text(run.run_seconds)},
          {energy_text(run.energy)},
          {ranges_text(run.gpus)}};
}

}  // namespace

Table job_table(const std::vector<Run>& runs) {
  Table table{{{"RUN", 16, 64, 100},
               {"USER", 6, 16, 75},
               {"STATE", 7, 7, 70},
               {"STEP", 6, 10, 95, true},
               {"STEP/S", 7, 12, 90, true},
               {"LOSS", 6, 8, 85, true},
               {"PHASE", 17, 24, 66},
               {"TIME", 6, 6, 55, true},
               {"ENERGY", 8, 9, 50, true},
               {"GPUS", 5, 20, 80}},
              {}};
  for (const Run& run : runs) table.rows.push_back({cells_of(run)});
  return table;
}

}  // namespace gpumeter::top
