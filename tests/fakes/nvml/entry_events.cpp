#include <algorithm>
#include <chrono>

#include "tests/fakes/nvml/call.hpp"
#include "tests/fakes/nvml/events.hpp"

namespace gpumeter::fake_nvml {
namespace {

using Registration = EventSetState::Registration;
using Steady = std::chrono::steady_clock;

nvml::EventSet handle_of(std::uint64_t id) { return reinterpret_cast<nvml::EventSet>(id << 4); }
std::uint64_t id_of(nvml::EventSet set) { return reinterpret_cast<std::uint64_t>(set) >> 4; }

/// Returns null, and records a violation, if the set does not exist (any more). Call with the library's mutex
/// held.
std::shared_ptr<EventSetState> find_set(Library& library, nvml::EventSet set, const char* function) {
  const auto found = library.event_sets.find(id_of(set));
  if (found != library.event_sets.end()) return found->second;
  const bool freed = library.freed.contains(id_of(set));
  library.violations +=
      std::string(function) + (freed ? " with a freed event set\n" : " with no event set\n");
  return nullptr;
}

/// The next event of each source at the registration; earlier events are lost.
std::vector<std::size_t> next_events(const Scenario& scenario, double now) {
  std::vector<std::size_t> next;
  for (const auto& source : scenario.events) {
    const double since = now - source.when.from;
    const auto passed = source.rate > 0
                            ? static_cast<std::size_t>(std::ceil(std::max(0.0, since) * source.rate))
                            : std::size_t{since > 0};
    next.push_back(passed);
  }
  return next;
}

struct Due {
  double time = kForever;
  Registration* registration = nullptr;
  std::size_t source = 0;
};

Due first_due(EventSetState& set, const Scenario& scenario) {
  Due first;
  for (auto& registration : set.registrations) {
    for (std::size_t i = 0; i < registration.next.size(); ++i) {
      const EventSource& source = scenario.events[i];
      if (source.device != registration.device || (source.type & registration.types) == 0) continue;
      const auto time = source.time_of(registration.next[i]);
      if (time && *time < first.time) first = {*time, &registration, i};
    }
  }
  return first;
}

void deliver(const Due& due, const Scenario& scenario, nvml::EventData& out) {
  const EventSource& source = scenario.events[due.source];
  ++due.registration->next[due.source];
  out = {due.registration->handle, source.type, source.data, source.gpu_instance, source.compute_instance};
}

/// Call with the mutex held. Releases it while waiting.
unsigned wait(std::unique_lock<std::mutex>& lock, EventSetState& set, const Scenario& scenario,
              nvml::EventData& out, Steady::time_point deadline) {
  Library& library = Library::instance();
  const unsigned generation = library.generation;
  for (;;) {
    if (set.freed || library.generation != generation || library.inits == 0) return nvml::kUninitialized;
    const double now = library.clock.now();
    if (const unsigned error = scenario.system.error("nvmlEventSetWait_v2", now)) return error;
    const Due due = first_due(set, scenario);
    if (due.time <= now) return deliver(due, scenario, out), nvml::kSuccess;
    if (Steady::now() >= deadline) return nvml::kTimeout;
    auto until = deadline;
    if (!library.clock.is_virtual() && due.registration != nullptr) {
      const auto rest =
          std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(due.time - now));
      until = std::min(deadline, Steady::now() + rest);
    }
    library.changed.wait_until(lock, until);
  }
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlEventSetCreate(nvml::EventSet* out) {
  Call call("nvmlEventSetCreate");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  const std::uint64_t id = library.next_id++;
  library.event_sets.emplace(id, std::make_shared<EventSetState>());
  *out = handle_of(id);
  return nvml::kSuccess;
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetSupportedEventTypes(nvml::Device device, std::uint64_t* out) {
  return one_number("nvmlDeviceGetSupportedEventTypes", device, "supported_events", out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceRegisterEvents(nvml::Device device, std::uint64_t types,
                                                   nvml::EventSet set) {
  return on_device("nvmlDeviceRegisterEvents", device, [&](const Call& call) -> unsigned {
    std::uint64_t supported = 0;
    if (const unsigned error = call.read("supported_events", &supported)) return error;
    if ((types & ~supported) != 0) return nvml::kNotSupported;
    Library& library = Library::instance();
    const std::lock_guard lock(library.mutex);
    const auto state = find_set(library, set, "nvmlDeviceRegisterEvents");
    if (state == nullptr) return nvml::kInvalidArgument;
    state->registrations.push_back(
        {call.handle().device, device, types, next_events(call.scenario(), call.now())});
    library.changed.notify_all();
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlEventSetWait_v2(nvml::EventSet set, nvml::EventData* out, unsigned timeout_ms) {
  const auto deadline = Steady::now() + std::chrono::milliseconds(timeout_ms);
  Call call("nvmlEventSetWait_v2");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  Library& library = Library::instance();
  std::unique_lock lock(library.mutex);
  const auto state = find_set(library, set, "nvmlEventSetWait_v2");
  if (state == nullptr) return nvml::kInvalidArgument;
  ++state->waiting;
  const unsigned result = wait(lock, *state, call.scenario(), *out, deadline);
  --state->waiting;
  return result;
}

FAKE_NVML_EXPORT unsigned nvmlEventSetFree(nvml::EventSet set) {
  Call call("nvmlEventSetFree");
  if (const unsigned error = call.enter()) return error;
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  const auto state = find_set(library, set, "nvmlEventSetFree");
  if (state == nullptr) return nvml::kInvalidArgument;
  if (state->waiting > 0) library.violations += "nvmlEventSetFree with a wait under way\n";
  state->freed = true;
  library.event_sets.erase(id_of(set));
  library.freed.insert(id_of(set));
  library.changed.notify_all();
  return nvml::kSuccess;
}

}  // namespace gpumeter::fake_nvml
