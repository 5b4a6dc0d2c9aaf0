#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fakes/nvml/fake_nvml.hpp"
#include "tests/fakes/nvml/without_symbols.hpp"
#include "tests/fakes/places.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {

/// A fake NVML for one test, which plays a scenario written in the test. It is a copy of the library, so that
/// it shares no time and no calls with other tests. A scenario may `include: fixtures/h100_8.yaml`.
class FakeDriver {
 public:
  /// `lacking`: functions that this library does not have.
  explicit FakeDriver(const std::string& scenario, const std::vector<std::string>& lacking = {}) {
    tree_.write("fixtures", "-> " + places::in_tests("fixtures/nvidia"));
    fake_nvml::copy_without_symbols(places::kFakeNvml, library(), lacking);
    handle_ = ::dlopen(library().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
    tree_.write("scenario.yaml", scenario);
    ::setenv("FAKE_NVML_SCENARIO", (tree_ / "scenario.yaml").c_str(), 1);
  }
  // The library stays loaded: memory that it never frees would count as leaked after an unload.
  ~FakeDriver() = default;
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  std::string library() const { return tree_ / "libnvidia-ml.so.1"; }

  /// From the first call on, the time stands still at the set second. Without a call, the time is real.
  void set_time(double seconds) const {
    function<decltype(fake_nvml_set_time)>("fake_nvml_set_time")(seconds);
  }

  std::uint64_t calls(const char* name = "all") const {
    return function<decltype(fake_nvml_calls)>("fake_nvml_calls")(name);
  }
  std::string violations() const {
    return function<decltype(fake_nvml_violations)>("fake_nvml_violations")();
  }
  FakeNvmlOpen open() const { return function<decltype(fake_nvml_open)>("fake_nvml_open")(); }

  /// "inits 1 sets 0 samples 2 calls 0"
  std::string opened() const {
    const FakeNvmlOpen now = open();
    return "inits " + std::to_string(now.inits) + " sets " + std::to_string(now.event_sets) + " samples " +
           std::to_string(now.gpm_samples) + " calls " + std::to_string(now.calls_under_way);
  }
  static constexpr const char* kNothing = "inits 0 sets 0 samples 0 calls 0";

 private:
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  const Tree tree_{{}};
  void* handle_ = nullptr;
};

}  // namespace gpumeter
