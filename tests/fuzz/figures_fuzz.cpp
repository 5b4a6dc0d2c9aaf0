// figures.state of the state folder, with and without its checksum. What is loaded is saved, and loads again
// as it was.
#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "daemon/state/device_totals.hpp"
#include "daemon/state/figures_file.hpp"
#include "exporter/json/api.hpp"
#include "exporter/store/store.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

void read_devices(std::string_view section) {
  TotalsBook totals;
  if (!totals.load(section)) return;
  TotalsBook again;
  fuzz::expect(bool(again.load(totals.save())) && again.save() == totals.save());
}

void read_workloads(std::string_view section) {
  static const SystemClock clock;
  static const workloads::WorkloadBook book;
  workloads::CostLedger ledger(clock);
  if (!ledger.load(section, clock.realtime(), true)) return;
  workloads::CostLedger again(clock);
  fuzz::expect(bool(again.load(ledger.save(book), clock.realtime(), true)));
  fuzz::expect(workloads_json(again.workloads()) == workloads_json(ledger.workloads()));
}

void read_runs(std::string_view section) {
  static Store store;
  const SystemClock clock;
  const jobs::Moment now{clock.boottime(), clock.realtime()};
  const auto lives = [](const jobs::SenderId&) { return true; };
  Source source = store.attach();
  jobs::RunModel model(source, {}, lives);
  if (!model.restore(section, now, false)) return;
  model.tick(now);
  Source other = store.attach();
  jobs::RunModel again(other, {}, lives);
  fuzz::expect(bool(again.restore(model.save(now), now, true)));
}

void read_file(std::string_view text) {
  const Result<SavedState> state = decode(text);
  if (!state) return;
  const Result<SavedState> again = decode(encode(*state));
  fuzz::expect(again && again->sections == state->sections && again->saved_at == state->saved_at);
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  read_file(text);
  read_devices(text);
  read_workloads(text);
  read_runs(text);
  return 0;
}
