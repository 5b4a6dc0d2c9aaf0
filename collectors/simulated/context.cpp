#include "collectors/simulated/context.hpp"

#include <thread>
#include <utility>

namespace gpumeter::simulated {
namespace {

// How often a hung call reads the clock. The clock may be a test's and jump.
constexpr auto kHangStep = std::chrono::milliseconds(20);

}  // namespace

Simulation::Simulation(const Settings& settings, const Clock& clock, std::string procfs)
    : clock_(clock), start_(clock.monotonic()), procfs_(std::move(procfs)), processes_(settings.processes) {
  for (int device = 0; device < settings.devices; ++device) {
    devices_.emplace_back(settings.workload, settings.seed, device, settings.events);
  }
}

SimulatedContext::SimulatedContext(std::shared_ptr<const Simulation> simulation, std::size_t device)
    : simulation_(std::move(simulation)),
      model_(&simulation_->devices()[device]),
      processes_(simulation_, device) {}

Result<Done> SimulatedContext::open(const DeviceInfo& info) {
  if (!model_->timeline().holds(Event::Kind::lose, simulation_->now())) return Done{};
  return Error(info.uuid + ": lost by a simulated event");
}

Readiness SimulatedContext::begin_pass(const Pass& pass) noexcept {
  time_ = simulation_->since_start(pass.now);
  sit_out_hang();
  return model_->timeline().holds(Event::Kind::lose, time_) ? Readiness::gone : Readiness::awake;
}

ReadStatus SimulatedContext::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  processes_.list(pass.now, out);
  return ReadStatus::ok;
}

// As with a stuck driver, nothing interrupts the wait except the end of the event.
void SimulatedContext::sit_out_hang() noexcept {
  while (model_->timeline().holds(Event::Kind::hang, time_)) {
    std::this_thread::sleep_for(kHangStep);
    time_ = simulation_->now();
  }
}

}  // namespace gpumeter::simulated
