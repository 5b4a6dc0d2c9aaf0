#include "collectors/intel/context.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

namespace gpumeter::intel {

Result<Done> IntelContext::open(const DeviceInfo& info) {
  std::error_code error;
  if (!std::filesystem::is_directory(info.source, error)) return Error(info.source + ": does not exist");
  close();
  info_ = info;
  paths_ = IntelPaths(info.source);
  gts_ = find_gts(info.source);
  throttle_ = Throttle(gts_);
  power_ = RuntimePower(info.source);
  screens_ = Screens(info.source);
  for (const Gt& gt : gts_) {
    if (const auto file = files_.open(gt.act_freq)) clocks_.push_back(*file);
  }
  const PowerState state = power_.read().value_or(PowerState());
  awake_ = !state.suspended;
  is_bound_asleep_ = !awake_;
  if (environment_.pmu) {
    pmu_folder_ = pmu::find_folder(environment_.sysfs_root, info.driver, info.pci_address);
  }
  was_let_sleep_ = is_let_sleep_ = must_let_sleep(state);
  if (!pmu_folder_.empty() && !is_let_sleep_) {
    meter_ = pmu::EngineMeter(pmu_folder_, info.driver, gts_, *environment_.pmu);
  }
  clients_ = fdinfo::DeviceWatch(environment_.drm_users, info.pci_address, awake_);
  if (environment_.query_memory && !info.minor.empty()) {
    const bool is_render = std::filesystem::exists(info.source + "/drm/renderD" + info.minor, error);
    node_ = (is_render ? "/dev/dri/renderD" : "/dev/dri/card") + info.minor;
  }
  has_errors_ = awake_ && environment_.read_errors && errors().status == ReadStatus::ok;
  return Done{};
}

// An open event of xe holds a reference that keeps the card awake; one of i915 does not (kernel 7.2,
// xe_pmu.c, xe_pmu_event_init; i915_pmu.c).
bool IntelContext::must_let_sleep(const PowerState& state) const noexcept {
  return info_.driver == "xe" && !pmu_folder_.empty() && (state.may_suspend || state.suspended);
}

void IntelContext::close() noexcept { *this = IntelContext(std::move(environment_)); }

Readiness IntelContext::begin_pass(const Pass& pass) noexcept {
  const bool lost = files_.lost();
  files_.begin_pass();
  lines_.begin_pass();
  throttle_.begin_pass();
  is_meter_fresh_ = false;
  is_memory_fresh_ = false;
  are_errors_fresh_ = false;
  now_ = pass.now;
  is_after_gap_ = pass.elapsed == Nanoseconds{0};
  const std::optional<PowerState> state = power_.read();
  if (lost || !state) return Readiness::gone;
  awake_ = !state->suspended;
  client_counters_.begin_pass(clients_, pass.now);
  is_let_sleep_ = must_let_sleep(*state);
  if (is_let_sleep_ && meter_.is_open()) meter_ = pmu::EngineMeter();
  const bool is_read = may_read(pass, *state);
  clients_.turn_on(awake_ && (is_read || !scans_prevent_sleep(*state)));
  return is_read ? Readiness::awake : Readiness::asleep;
}

// A scan of xe wakes its card, or is a use of it (kernel 7.2, xe_drm_client.c, show_run_ticks).
bool IntelContext::scans_prevent_sleep(const PowerState& state) const noexcept {
  return info_.driver == "xe" && state.delay >= fdinfo::DeviceWatch::kEvery;
}

// Only the fast tier checks whether the card is in use; the other tiers use its result.
bool IntelContext::may_read(const Pass& pass, const PowerState& state) noexcept {
  const auto is_used = [this] { return screens_.any_on() || clients_have_worked(); };
  return sleep_.may_read(pass.now, state, pass.tier == Tier::fast, is_used, [this] { return is_busy(); });
}

bool IntelContext::is_busy() noexcept {
  return std::ranges::any_of(clocks_, [this](int clock) {
    const Sample megahertz = files_.read(clock);
    return megahertz.status == ReadStatus::ok && megahertz.value > 0;
  });
}

bool IntelContext::clients_have_worked() noexcept {
  const Sample busiest = client_counters_.busiest();
  if (busiest.status != ReadStatus::ok) return false;
  return std::exchange(clients_worked_, busiest.value) != busiest.value;
}

void IntelContext::end_binding() {
  const bool lacks_numbers = files_.note_unanswered();
  const bool lacks_lines = lines_.note_unanswered();
  is_provisional_ = is_bound_asleep_ || lacks_numbers || lacks_lines || !paths_.unreadable().empty();
  look_again_at_ = {};
}

// Binding again opens the events that the card's sleep forbade, and ends the rows of those that it now
// forbids.
bool IntelContext::has_more(Nanoseconds now) noexcept try {
  constexpr auto kLookEvery = std::chrono::seconds(4);
  if (!awake_) return false;
  if (was_let_sleep_ != is_let_sleep_) return true;
  if (!is_provisional_) return false;
  if (is_bound_asleep_) return true;
  if (look_again_at_ == Nanoseconds{0}) look_again_at_ = now + kLookEvery;
  if (now < look_again_at_) return false;
  look_again_at_ = now + kLookEvery;
  if (files_.answers_now() || lines_.answers_now()) return true;
  return std::ranges::any_of(paths_.unreadable(),
                             [](const std::string& path) { return sysfs::probe(path) == ReadStatus::ok; });
} catch (const std::exception&) {  // out of memory
  return false;
}

std::optional<int> IntelContext::file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? files_.open(*path) : std::nullopt;
}

std::optional<int> IntelContext::constant_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? files_.open_constant(*path) : std::nullopt;
}

std::optional<int> IntelContext::lines_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? lines_.open(*path) : std::nullopt;
}

// The rows of the pass have asked for the memory in use; graphics in the processor have none of their own.
ReadStatus IntelContext::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  const bool is_known = is_memory_fresh_ && memory_.status == ReadStatus::ok;
  return client_lists_.read(clients_, pass.now, is_known ? memory_.used : std::nullopt, out);
}

const EngineTimes& IntelContext::events() noexcept {
  static constexpr EngineTimes kNone{};
  if (!meter_.is_open()) return kNone;
  if (!std::exchange(is_meter_fresh_, true)) return meter_.read(now_);
  return meter_.times();
}

const memory::Regions& IntelContext::memory() noexcept {
  if (!std::exchange(is_memory_fresh_, true)) memory_ = environment_.query_memory(node_, info_.driver);
  return memory_;
}

const ras::Counts& IntelContext::errors() noexcept {
  if (!std::exchange(are_errors_fresh_, true)) errors_ = environment_.read_errors(info_.pci_address);
  return errors_;
}

}  // namespace gpumeter::intel
