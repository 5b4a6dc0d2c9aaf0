#include "collectors/intel/card.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace gpumeter::intel {

Environment environment_of(files::Roots roots) {
  Environment environment{std::move(roots)};
  if (environment.roots.sysfs != "/sys") return environment;
  environment.pmu = std::make_shared<pmu::KernelOpener>();
  environment.may_see_use = memory::may_see_use();
  environment.query_memory = [may_see = environment.may_see_use](const std::string& node,
                                                                 const std::string& driver) {
    return memory::query_node(node, driver, may_see);
  };
  environment.read_errors = ras::read_counts;
  return environment;
}

std::vector<DeniedValues> denied_values(const Environment& environment,
                                        const std::vector<DeviceInfo>& devices) {
  std::vector<DeniedValues> denied;
  const auto has_events = [&](const DeviceInfo& info) {
    return !pmu::find_folder(environment.roots.sysfs, info.driver, info.pci_address).empty();
  };
  const bool may_have_events = environment.pmu && std::ranges::any_of(devices, has_events);
  if (may_have_events && pmu::permission(*environment.pmu) == ReadStatus::denied) {
    denied.push_back({"busy_time", "pmu.conf"});
  }
  if (!devices.empty() && !environment.may_see_use) denied.push_back({"used_memory", "pmu.conf"});
  return denied;
}

void IntelCard::open(files::Context& context, const DeviceInfo& info, const files::PowerState& state) {
  close();
  context_ = &context;
  info_ = info;
  gts_ = find_gts(info.source);
  throttle_ = Throttle(gts_);
  for (const Gt& gt : gts_) {
    if (const auto file = context.number_file_at(gt.act_freq)) clocks_.push_back(*file);
  }
  if (environment_.pmu) {
    pmu_folder_ = pmu::find_folder(environment_.roots.sysfs, info.driver, info.pci_address);
  }
  was_let_sleep_ = is_let_sleep_ = must_let_sleep(state);
  if (!pmu_folder_.empty() && !is_let_sleep_) {
    meter_ = pmu::EngineMeter(pmu_folder_, info.driver, gts_, *environment_.pmu);
  }
  if (environment_.query_memory && !info.minor.empty()) {
    std::error_code error;
    const bool is_render = std::filesystem::exists(info.source + "/drm/renderD" + info.minor, error);
    node_ = (is_render ? "/dev/dri/renderD" : "/dev/dri/card") + info.minor;
  }
  has_errors_ = context.awake() && environment_.read_errors && errors().status == ReadStatus::ok;
}

void IntelCard::close() noexcept { *this = IntelCard(std::move(environment_)); }

// An open event of xe holds a reference that keeps the card awake; one of i915 does not (kernel 7.2,
// xe_pmu.c, xe_pmu_event_init; i915_pmu.c).
bool IntelCard::must_let_sleep(const files::PowerState& state) const noexcept {
  return info_.driver == "xe" && !pmu_folder_.empty() && (state.may_suspend || state.suspended);
}

void IntelCard::begin_pass(const files::PowerState& state) noexcept {
  throttle_.begin_pass();
  is_meter_fresh_ = is_memory_fresh_ = are_errors_fresh_ = false;
  is_let_sleep_ = must_let_sleep(state);
  if (is_let_sleep_ && meter_.is_open()) meter_ = pmu::EngineMeter();
}

bool IntelCard::is_used() noexcept {
  const Sample busiest = context_->clients().busiest();
  if (busiest.status != ReadStatus::ok) return false;
  return std::exchange(clients_worked_, busiest.value) != busiest.value;
}

bool IntelCard::is_busy() noexcept {
  return std::ranges::any_of(clocks_, [this](int clock) {
    const Sample megahertz = context_->number(clock);
    return megahertz.status == ReadStatus::ok && megahertz.value > 0;
  });
}

// The rows of the pass have asked for the memory in use; graphics in the processor have none of their own.
std::optional<double> IntelCard::memory_in_use() noexcept {
  const bool is_known = is_memory_fresh_ && memory_.status == ReadStatus::ok;
  return is_known ? memory_.used : std::nullopt;
}

bool IntelCard::has_events(std::size_t place) const noexcept {
  return place == pmu::kBusiest ? meter_.is_open() : meter_.has(static_cast<EngineClass>(place));
}

const pmu::EngineTimes& IntelCard::events() noexcept {
  static constexpr pmu::EngineTimes kNone{};
  if (!meter_.is_open()) return kNone;
  if (!std::exchange(is_meter_fresh_, true)) return meter_.read(context_->now());
  return meter_.times();
}

const memory::Regions& IntelCard::memory() noexcept {
  if (!std::exchange(is_memory_fresh_, true)) memory_ = environment_.query_memory(node_, info_.driver);
  return memory_;
}

const ras::Counts& IntelCard::errors() noexcept {
  if (!std::exchange(are_errors_fresh_, true)) errors_ = environment_.read_errors(info_.pci_address);
  return errors_;
}

}  // namespace gpumeter::intel
