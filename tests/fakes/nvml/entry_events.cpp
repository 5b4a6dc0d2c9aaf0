#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "tests/fakes/nvml/call.hpp"
#include "tests/fakes/nvml/events.hpp"

extern "C" unsigned nvmlDeviceGetHandleByUUID(const char* uuid, gpumeter::nvidia::nvml::Device* out);

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

bool is_wanted(const EventSource& source, const Registration& registration) {
  return source.device == registration.device && (source.type & registration.types) != 0 &&
         source.log_level >= registration.min_log_level;
}

Due first_due(EventSetState& set, const Scenario& scenario) {
  Due first;
  for (auto& registration : set.registrations) {
    for (std::size_t i = 0; i < registration.next.size(); ++i) {
      const EventSource& source = scenario.events[i];
      if (!is_wanted(source, registration)) continue;
      const auto time = source.time_of(registration.next[i]);
      if (time && *time < first.time) first = {*time, &registration, i};
    }
  }
  return first;
}

using Deliver = std::function<void(const EventSource&, const Registration&)>;

/// Call with the mutex held. Releases it while waiting.
unsigned wait(std::unique_lock<std::mutex>& lock, EventSetState& set, const Call& call, const char* function,
              Steady::time_point deadline, const Deliver& deliver) {
  Library& library = Library::instance();
  const Scenario& scenario = call.scenario();
  const unsigned generation = library.generation;
  for (;;) {
    if (set.freed || library.generation != generation || library.inits == 0) return nvml::kUninitialized;
    const double now = library.clock.now();
    if (const unsigned error = scenario.system.error(function, now)) return error;
    const Due due = first_due(set, scenario);
    if (due.time <= now) {
      ++due.registration->next[due.source];
      deliver(scenario.events[due.source], *due.registration);
      return nvml::kSuccess;
    }
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

unsigned wait_on(nvml::EventSet set, const char* function, const void* out, unsigned timeout_ms,
                 const Deliver& deliver) {
  const auto deadline = Steady::now() + std::chrono::milliseconds(timeout_ms);
  Call call(function);
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  Library& library = Library::instance();
  std::unique_lock lock(library.mutex);
  const auto state = find_set(library, set, function);
  if (state == nullptr) return nvml::kInvalidArgument;
  ++state->waiting;
  const unsigned result = wait(lock, *state, call, function, deadline, deliver);
  --state->waiting;
  return result;
}

template <std::size_t Size>
void copy_text(const std::string& from, char (&to)[Size]) {
  std::memset(to, 0, Size);
  std::memcpy(to, from.data(), std::min(Size, from.size()));
}

void describe(const EventSource& source, nvml::SetEvent& out) {
  if (source.type != EventSource::kOperational) {
    out.type = source.type;
    out.data = source.data;
    return;
  }
  out.data_type = nvml::kOperationalEvent;
  copy_text(source.module, out.source_module);
  out.module_event_code = source.code;
  out.severity = source.severity;
  out.log_level = source.log_level;
  out.attributes = source.attributes;
  out.group_attributes = source.group_attributes;
  out.group_size = 1;
}

/// A call about the contexts of the event that was read last. `body` takes their list.
template <class Body>
unsigned on_contexts(const char* function, nvml::EventSet set, Body body) {
  Call call(function);
  if (const unsigned error = call.enter()) return error;
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  const auto state = find_set(library, set, function);
  if (state == nullptr) return nvml::kInvalidArgument;
  return state->has_contexts ? body(state->contexts) : unsigned{nvml::kNotFound};
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
        {call.handle().device, device, types, 0, next_events(call.scenario(), call.now())});
    library.changed.notify_all();
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlEventSetWait_v2(nvml::EventSet set, nvml::EventData* out, unsigned timeout_ms) {
  return wait_on(
      set, "nvmlEventSetWait_v2", out, timeout_ms,
      [&](const EventSource& source, const Registration& registration) {
        *out = {registration.handle, source.type, source.data, source.gpu_instance, source.compute_instance};
      });
}

FAKE_NVML_EXPORT unsigned nvmlEventSetRegisterGpuOperationalEvents_v1(
    nvml::EventSet set, const nvml::OperationalEventConfig* config) {
  constexpr auto kName = "nvmlEventSetRegisterGpuOperationalEvents_v1";
  if (config == nullptr || strnlen(config->uuid, sizeof config->uuid) == sizeof config->uuid)
    return nvml::kInvalidArgument;
  nvml::Device device = nullptr;
  if (nvmlDeviceGetHandleByUUID(config->uuid, &device) != nvml::kSuccess) return nvml::kInvalidArgument;
  return on_device(kName, device, [&](const Call& call) -> unsigned {
    std::uint64_t is_supported = 0;
    if (const unsigned error = call.read("operational_events", &is_supported)) return error;
    Library& library = Library::instance();
    const std::lock_guard lock(library.mutex);
    const auto state = find_set(library, set, kName);
    if (state == nullptr) return nvml::kInvalidArgument;
    state->registrations.push_back({call.handle().device, device, EventSource::kOperational,
                                    config->min_log_level, next_events(call.scenario(), call.now())});
    library.changed.notify_all();
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlEventSetWait_v3(nvml::EventSet set, nvml::SetEvent* out) {
  Library& library = Library::instance();
  return wait_on(set, "nvmlEventSetWait_v3", out, out == nullptr ? 0 : out->timeout_ms,
                 [&](const EventSource& source, const Registration& registration) {
                   const auto state = library.event_sets.at(id_of(set));
                   const Facts& facts = library.scenario->devices.at(registration.device).facts;
                   *out = {.timeout_ms = out->timeout_ms};
                   copy_text(facts.at("uuid", library.clock.now()).text, out->uuid);
                   out->gpu_instance = source.gpu_instance;
                   out->compute_instance = source.compute_instance;
                   describe(source, *out);
                   state->contexts = source.contexts;
                   state->has_contexts = true;
                 });
}

FAKE_NVML_EXPORT unsigned nvmlEventSetGetContextCount_v1(nvml::EventSet set, nvml::EventContextCount* out) {
  return on_contexts("nvmlEventSetGetContextCount_v1", set, [&](const auto& contexts) -> unsigned {
    out->count = static_cast<unsigned>(contexts.size());
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(nvml::EventSet set,
                                                                                nvml::EventLegacyXid* out) {
  return on_contexts("nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1", set,
                     [&](const auto& contexts) -> unsigned {
                       if (out->index >= contexts.size()) return nvml::kInvalidArgument;
                       if (contexts[out->index] == 0) return nvml::kNotFound;
                       out->xid = contexts[out->index];
                       return nvml::kSuccess;
                     });
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
