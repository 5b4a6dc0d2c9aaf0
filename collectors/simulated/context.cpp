#include "collectors/simulated/context.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::simulated {
namespace {

/// Enough for more than a thousand pids; the rest of the file is not read.
constexpr std::size_t kMostText = 8192;

std::vector<int> pids_in(const std::string& path) {
  std::array<char, kMostText> buffer{};
  const sysfs::Bytes bytes = sysfs::File(path).read(buffer);
  std::string_view text(buffer.data(), bytes.size);
  std::vector<int> pids;
  while (!text.empty()) {
    const int pid = parse_number<int>(trimmed(take_until(text, '\n'))).value_or(0);
    if (pid > 0) pids.push_back(pid);
  }
  return pids;
}

bool lives(const std::string& procfs, int pid) {
  return proc::is_alive(sysfs::read_text(proc::path(procfs, pid, "stat")));
}

}  // namespace

Processes::Processes(std::shared_ptr<const Simulation> simulation, std::size_t device)
    : simulation_(std::move(simulation)),
      model_(simulation_->devices()[device]),
      listed_at_(simulation_->now()) {
  for (const ProcessOption& option : simulation_->processes()) {
    if (!option.device || static_cast<std::size_t>(*option.device) == device) options_.push_back(option);
  }
}

void Processes::list(Nanoseconds now, std::vector<DeviceProcess>& out) {
  const Nanoseconds time = std::max(simulation_->since_start(now), listed_at_);
  for (const ProcessOption& option : options_) add(option, to_seconds(time - listed_at_), out);
  const auto is_open = [](const DeviceProcess& process) { return !process.busy_seconds; };
  const auto sharing = static_cast<double>(std::count_if(out.begin(), out.end(), is_open));
  const double busy = model_.busy_seconds(time) - model_.busy_seconds(listed_at_);
  for (DeviceProcess& process : out) {
    if (is_open(process)) process.busy_seconds = busy / sharing;
  }
  listed_at_ = time;
}

void Processes::add(const ProcessOption& option, double seconds, std::vector<DeviceProcess>& out) const {
  const std::vector<int> pids = option.pid > 0 ? std::vector{option.pid} : pids_in(option.file);
  for (const int pid : pids) {
    const auto same = [pid](const DeviceProcess& process) { return process.pid == pid; };
    if (std::any_of(out.begin(), out.end(), same) || !lives(simulation_->procfs(), pid)) continue;
    DeviceProcess process{pid, option.memory_bytes, std::nullopt};
    if (option.busy) process.busy_seconds = *option.busy * seconds;
    out.push_back(process);
  }
}

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
