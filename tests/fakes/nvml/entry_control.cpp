#include "tests/fakes/nvml/call.hpp"
#include "tests/fakes/nvml/fake_nvml.hpp"

#pragma GCC visibility push(default)

namespace {
using gpumeter::fake_nvml::Library;
}

void fake_nvml_set_time(double seconds) {
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  library.clock.set(seconds);
  library.changed.notify_all();
}

void fake_nvml_reload() { Library::instance().reload(); }

std::uint64_t fake_nvml_calls(const char* name) {
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  if (std::string_view(name) == "all") {
    std::uint64_t sum = 0;
    for (const auto& [function, calls] : library.calls) sum += calls;
    return sum;
  }
  const auto found = library.calls.find(std::string_view(name));
  return found == library.calls.end() ? 0 : found->second;
}

FakeNvmlOpen fake_nvml_open() {
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  return {library.inits, static_cast<unsigned>(library.event_sets.size()),
          static_cast<unsigned>(library.samples.size()), library.under_way};
}

const char* fake_nvml_violations() {
  // Not thread_local: LeakSanitizer cannot handle such memory in a library that was loaded late.
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  library.told = library.violations;
  return library.told.c_str();
}

#pragma GCC visibility pop
