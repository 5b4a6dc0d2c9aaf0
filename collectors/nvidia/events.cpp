#include "collectors/nvidia/events.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "collectors/api/event_ledger.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "collectors/nvidia/nvml/session.hpp"

namespace gpumeter::nvidia {
namespace {

/// The last name stands for all others.
std::size_t place_in(std::span<const std::string_view> names, std::uint64_t xid) noexcept {
  const auto known = std::find_if(names.begin(), names.end() - 1, [&](std::string_view name) {
    return parse_number<std::uint64_t>(name) == xid;
  });
  return static_cast<std::size_t>(known - names.begin());
}

}  // namespace

std::optional<Event> event_of(std::uint64_t type) noexcept {
  const auto* const known = std::ranges::find(kEvents, type, &EventKind::type);
  if (type == kOwnEvent || known == std::end(kEvents)) return std::nullopt;
  return static_cast<Event>(known - std::begin(kEvents));
}

std::uint64_t heard_types() noexcept {
  std::uint64_t types = nvml::kEventXid;
  for (const EventKind& event : kEvents) types |= event.type;
  return types;
}

std::size_t xid_place(std::uint64_t xid) noexcept { return place_in(kXidNames, xid); }

void DeviceEvents::count_xid(std::uint64_t xid, unsigned instance, Nanoseconds realtime,
                             std::uint64_t times) noexcept {
  const std::size_t place = xid_place(xid);
  xids_[place].fetch_add(times);
  last_[place] = std::max(last_[place].load(), to_seconds(realtime));
  if (instance >= kInstances) return;
  instance_xids_[instance][place_in(kInstanceXidNames, xid)].fetch_add(times);
}

void DeviceEvents::forget_instances() noexcept {
  for (auto& counts : instance_xids_) {
    for (std::atomic<std::uint64_t>& count : counts) count = 0;
  }
}

std::uint64_t DeviceEvents::xids_of(unsigned instance, std::size_t place) const noexcept {
  return instance < kInstances ? instance_xids_[instance][place].load() : 0;
}

namespace {

// Events are read in batches, so that a thread that stops the event thread need not wait for the end of a
// storm.
constexpr int kBite = 1000;

unsigned milliseconds(Nanoseconds time) noexcept {
  return static_cast<unsigned>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

/// Returns " of GPU instance 3, compute instance 0", as far as the driver attributes the event.
std::string whereabouts(const nvml::EventData& data) {
  if (data.gpu_instance == nvml::kNoInstance) return "";
  const std::string instance = " of GPU instance " + std::to_string(data.gpu_instance);
  if (data.compute_instance == nvml::kNoInstance) return instance;
  return instance + ", compute instance " + std::to_string(data.compute_instance);
}

}  // namespace

bool has_events(const NvmlFunctions& nvml) noexcept {
  return nvml.nvmlEventSetCreate != nullptr && nvml.nvmlDeviceRegisterEvents != nullptr &&
         nvml.nvmlEventSetWait_v2 != nullptr && nvml.nvmlEventSetFree != nullptr;
}

EventListener::~EventListener() {
  if (set_ != nullptr) nvml_.nvmlEventSetFree(set_);
}

void EventListener::listen(Source source) {
  if (source.types == 0) return;
  MutexLock lock(mutex_);
  listened_.push_back({std::move(source), false});
  changed_.notify_all();
}

void EventListener::forget(nvml::Device device) {
  MutexLock lock(mutex_);
  std::erase_if(listened_, [&](Listened& one) {
    if (one.device == device) stop(one);
    return one.device == device;
  });
}

// A refusal stays recorded, so that it is logged only once.
void EventListener::stop(Listened& one) {
  one.is_registered = false;
  if (one.events->reporting() == DeviceEvents::Reporting::on)
    one.events->set_reporting(DeviceEvents::Reporting::not_yet);
}

EventListener::Outcome EventListener::wait(Nanoseconds at_most, const Clock& clock) {
  Outcome outcome{nvml::kTimeout, {}};
  if (!register_new(clock, outcome.events)) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, at_most);
    return outcome;
  }
  for (int i = 0; i < kBite; ++i) {
    nvml::EventData data{};
    outcome.result = nvml_.nvmlEventSetWait_v2(set_, &data, i == 0 ? milliseconds(at_most) : 0);
    if (outcome.result != nvml::kSuccess) break;
    if (std::optional<DeviceEvent> event = take(data, clock)) outcome.events.push_back(*std::move(event));
  }
  if (outcome.result != nvml::kSuccess && outcome.result != nvml::kTimeout) start_anew();
  return outcome;
}

// Returns false if there is nothing to wait for. A driver that refuses is tried again after an interval.
bool EventListener::register_new(const Clock& clock, std::vector<DeviceEvent>& events) {
  constexpr auto kTryAgain = std::chrono::seconds(5);
  if (!has_events(nvml_)) return false;
  std::vector<Listened> fresh;
  {
    MutexLock lock(mutex_);
    if (listened_.empty()) return false;
    for (const Listened& one : listened_) {
      const bool is_due =
          one.events->reporting() != DeviceEvents::Reporting::refused || clock.monotonic() >= try_again_at_;
      if (!one.is_registered && is_due) fresh.push_back(one);
    }
  }
  if (fresh.empty()) return set_ != nullptr;
  try_again_at_ = clock.monotonic() + kTryAgain;
  const unsigned created = set_ != nullptr ? unsigned{nvml::kSuccess} : nvml_.nvmlEventSetCreate(&set_);
  if (created != nvml::kSuccess) set_ = nullptr;
  for (const Listened& one : fresh) {
    const bool has_set = created == nvml::kSuccess;
    note(one, has_set ? nvml_.nvmlDeviceRegisterEvents(one.device, one.types, set_) : created, events);
  }
  return set_ != nullptr;
}

void EventListener::note(const Listened& one, unsigned result, std::vector<DeviceEvent>& events) {
  using Reporting = DeviceEvents::Reporting;
  const bool is_registered = result == nvml::kSuccess;
  const bool is_news = !is_registered && one.events->reporting() != Reporting::refused;
  if (is_news)
    events.push_back(
        {one.uuid, "XIDs and other events are not counted, registration is retried: " + reason_of(result)});
  if (!is_registered) one.events->set_reporting(Reporting::refused);
  MutexLock lock(mutex_);
  for (Listened& known : listened_) {
    if (known.device != one.device) continue;
    known.is_registered = is_registered;
    if (is_registered) known.events->set_reporting(Reporting::on);
  }
}

// "On UNKNOWN the set must be freed" (nvml.h at nvmlEventSetWait_v2). A lost GPU makes the set unusable too.
void EventListener::start_anew() {
  nvml_.nvmlEventSetFree(std::exchange(set_, nullptr));
  MutexLock lock(mutex_);
  for (Listened& one : listened_) stop(one);
  changed_.wait_for(mutex_, std::chrono::milliseconds(100));
}

bool LoggedGpu::is_news(std::string kind, std::optional<std::uint64_t> code, unsigned instance,
                        const Clock& clock, std::string text) const {
  if (ledger == nullptr) return true;
  EventRecord event{.time = clock.realtime(),
                    .source = "nvml",
                    .vendor = "nvidia",
                    .pci_address = pci_address,
                    .kind = std::move(kind),
                    .code = code,
                    .text = std::move(text)};
  if (instance != nvml::kNoInstance) event.instance = instance;
  return ledger->note(std::move(event));
}

std::optional<DeviceEvent> EventListener::take(const nvml::EventData& data, const Clock& clock) {
  MutexLock lock(mutex_);
  const auto of = std::find_if(listened_.begin(), listened_.end(),
                               [&](const Listened& one) { return one.device == data.device; });
  if (of == listened_.end()) return std::nullopt;
  if (data.type == nvml::kEventXid) {
    const bool is_new =
        of->events->operational().is_first_report(data.data, XidSource::event_bit, clock.monotonic());
    if (!is_new) return std::nullopt;
    if (of->logged.is_news("xid", data.data, data.gpu_instance, clock))
      of->events->count_xid(data.data, data.gpu_instance, clock.realtime());
    return DeviceEvent{of->uuid, "xid " + std::to_string(data.data) + whereabouts(data)};
  }
  const std::optional<Event> event = event_of(data.type);
  if (!event) return std::nullopt;
  std::string name(kEvents[static_cast<std::size_t>(*event)].name);
  of->logged.is_news(name, std::nullopt, data.gpu_instance, clock);
  of->events->count(*event);
  return DeviceEvent{of->uuid, std::move(name)};
}

}  // namespace gpumeter::nvidia
