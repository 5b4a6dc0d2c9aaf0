#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "tests/fakes/nvml/library.hpp"

#define FAKE_NVML_EXPORT extern "C" __attribute__((visibility("default")))

namespace gpumeter::fake_nvml {

/// The handle of a device or an instance. It is never a pointer, so a stale handle does no harm and is
/// detected.
struct Handle {
  unsigned generation = 0, returns = 0, device = 0, instance = 0;  ///< instance: 0 none, or its number + 1
};
nvml::Device encode(const Handle& handle);
std::optional<Handle> decode(nvml::Device device);

/// Converts to NVML's integers, rounding to the nearest so that an exact integral stays exact.
template <class Number_>
Number_ to(const Value& value) {
  if constexpr (std::is_floating_point_v<Number_>) return static_cast<Number_>(value.number);
  const Number rounded = std::round(value.number);
  return rounded < 0 ? static_cast<Number_>(static_cast<std::int64_t>(rounded))
                     : static_cast<Number_>(static_cast<std::uint64_t>(rounded));
}

/// One call of a program, from its beginning to its end. No lock is held between the two.
class Call {
 public:
  explicit Call(const char* function);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// First step of every call: returns UNINITIALIZED, then applies the scenario's latency, hangs and errors.
  unsigned enter();
  /// As enter(), for a device: also applies its handle, its loss, and its own latency, hangs and errors.
  unsigned enter(nvml::Device handle);
  /// As enter(), for the device with this number in the scenario.
  unsigned enter_device(std::size_t number);

  /// The value for the device, or for the instance that the handle belongs to.
  Value at(std::string_view path) const { return facts().at(full(path), now()); }
  std::size_t count(std::string_view path) const { return facts().count(full(path)); }
  bool says(std::string_view path) const { return facts().find(full(path)) != nullptr; }
  /// Returns whether the path is a group with keys.
  bool says_below(std::string_view path) const {
    const std::string group = full(path) + ".";
    const auto first = facts().values.lower_bound(group);
    return first != facts().values.end() && first->first.starts_with(group);
  }
  bool lists(std::string_view path) const { return facts().counts.contains(full(path)); }
  const ValueOverTime* find(std::string_view path) const { return facts().find(full(path)); }
  const Facts& facts() const { return device_ == nullptr ? scenario_->system : device_->facts; }

  template <class Number_>
  unsigned read(std::string_view path, Number_* out) const {
    if (out == nullptr) return nvml::kInvalidArgument;
    const Value value = at(path);
    if (value.error != nvml::kSuccess) return value.error;
    if (!value.is_number) return nvml::kUnknown;
    *out = to<Number_>(value);
    return nvml::kSuccess;
  }

  /// Reads "0000:0c:00.0" to the address of `out` and clears the rest of it.
  unsigned read_address(std::string_view path, nvml::PciInfo* out) const;

  unsigned read_text(std::string_view path, char* out, std::size_t size) const;

  const Scenario& scenario() const { return *scenario_; }
  const std::shared_ptr<const Scenario>& shared_scenario() const { return scenario_; }
  const std::string& prefix() const { return prefix_; }  ///< of the instance's paths; empty for a device
  const Device& device() const { return *device_; }
  const Handle& handle() const { return handle_; }
  double now() const { return now_; }

 private:
  void delay(const Facts& facts);
  std::string full(std::string_view path) const {
    return prefix_.empty() ? std::string(path) : prefix_ + std::string(path);
  }

  const char* function_;
  std::shared_ptr<const Scenario> scenario_;
  const Device* device_ = nullptr;
  Handle handle_{};
  std::string prefix_;
  double now_ = 0;
};

template <class Body>
unsigned on_device(const char* function, nvml::Device device, Body body) {
  Call call(function);
  if (const unsigned error = call.enter(device)) return error;
  return body(call);
}

/// A getter of one number.
template <class Number_>
unsigned one_number(const char* function, nvml::Device device, std::string_view path, Number_* out) {
  return on_device(function, device, [&](const Call& call) { return call.read(path, out); });
}

/// Returns the value of the path, or `otherwise` if the scenario has none.
template <class Number_>
Number_ or_else(const Call& call, const std::string& path, Number_ otherwise) {
  Number_ number{};
  return call.read(path, &number) == nvml::kSuccess ? number : otherwise;
}

/// Returns the first error, otherwise success.
template <class... Results>
unsigned first_error(Results... results) {
  unsigned error = nvml::kSuccess;
  ((error = error != nvml::kSuccess ? error : results), ...);
  return error;
}

}  // namespace gpumeter::fake_nvml
