#include "tests/fakes/nvml/library.hpp"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/fakes/nvml/events.hpp"
#include "tests/fakes/nvml/gpm.hpp"

namespace gpumeter::fake_nvml {
namespace {

std::shared_ptr<const Scenario> read_scenario() {
  const char* path = std::getenv("FAKE_NVML_SCENARIO");
  if (path == nullptr) {
    std::fputs("fake_nvml: FAKE_NVML_SCENARIO names no scenario\n", stderr);
    return nullptr;
  }
  try {
    auto scenario = std::make_shared<const Scenario>(load_scenario(path));
    malloc_trim(0);  // the file's tree is larger than what is kept of it, and counts as the program's memory
    return scenario;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fake_nvml: %s: %s\n", path, error.what());
    return nullptr;
  }
}

}  // namespace

Library& Library::instance() {
  static Library* const library = new Library;
  return *library;
}

unsigned Library::init() {
  clock.start();
  {
    const std::lock_guard lock(mutex);
    if (inits > 0) return ++inits, nvml::kSuccess;
  }
  return first_init();
}

unsigned Library::first_init() {
  auto read = read_scenario();
  if (read == nullptr) return nvml::kUnknown;
  if (const auto window = read->system.hang("nvmlInit_v2", clock.now())) hang(*window);
  const double milliseconds = read->system.latency_ms("nvmlInit_v2", clock.now());
  if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  const double now = clock.now();
  if (const unsigned error = read->system.error("nvmlInit_v2", now)) return error;
  const std::lock_guard lock(mutex);
  if (inits++ > 0) return nvml::kSuccess;
  visible.clear();
  for (std::size_t i = 0; i < read->devices.size(); ++i) {
    const Value present = read->devices[i].facts.at("present", now);
    if (present.error != nvml::kSuccess || present.number != 0) visible.push_back(i);
  }
  scenario = std::move(read);
  ++generation;
  return nvml::kSuccess;
}

unsigned Library::shutdown() {
  const std::lock_guard lock(mutex);
  if (inits == 0) return nvml::kUninitialized;
  if (--inits > 0) return nvml::kSuccess;
  if (under_way > 1) violations += "nvmlShutdown with a call under way\n";  // 1: this call itself
  if (!samples.empty()) violations += "nvmlShutdown before nvmlGpmSampleFree\n";
  if (!event_sets.empty()) violations += "nvmlShutdown before nvmlEventSetFree\n";
  report();
  for (const auto& [id, sample] : samples) freed.insert(id);
  for (const auto& [id, set] : event_sets) freed.insert(id);
  samples.clear();
  event_sets.clear();
  changed.notify_all();
  return nvml::kSuccess;
}

// Serves tests that see the library only from outside the process. Call with the mutex held.
void Library::report() const {
  const char* path = std::getenv("FAKE_NVML_REPORT");
  if (path == nullptr) return;
  std::uint64_t sum = 0;
  for (const auto& [function, count] : calls) sum += count;
  std::ofstream(path, std::ios::app) << "shutdown " << sum << "\n" << violations;
}

void Library::reload() {
  auto read = read_scenario();
  const std::lock_guard lock(mutex);
  if (read != nullptr && inits > 0) scenario = std::move(read);
  clock.restart();
  ++reloads;
  ++generation;
  calls.clear();
  violations.clear();
  changed.notify_all();
}

void Library::violation(const std::string& what) {
  const std::lock_guard lock(mutex);
  violations += what + "\n";
}

void Library::hang(const Window& window) {
  const auto begun = std::chrono::steady_clock::now();
  const double lasts = window.until - window.from;
  std::unique_lock lock(mutex);
  const unsigned of = reloads;
  while (reloads == of && clock.now() < window.until) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begun;
    if (waited.count() >= lasts) return;
    changed.wait_for(lock, std::chrono::milliseconds(10));
  }
}

}  // namespace gpumeter::fake_nvml
