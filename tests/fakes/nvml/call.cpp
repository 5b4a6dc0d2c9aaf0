#include "tests/fakes/nvml/call.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

namespace gpumeter::fake_nvml {
namespace {

constexpr std::uint64_t kTag = 0x4E56;  // in the upper 16 bits: no program has such an address

}  // namespace

nvml::Device encode(const Handle& handle) {
  const std::uint64_t bits = (kTag << 48) | (std::uint64_t{handle.generation & 0xFFFFU} << 32) |
                             (std::uint64_t{handle.returns & 0xFFFFU} << 16) |
                             (std::uint64_t{handle.instance & 0xFFU} << 8) | (handle.device & 0xFFU);
  return reinterpret_cast<nvml::Device>(bits);
}

std::optional<Handle> decode(nvml::Device device) {
  const auto bits = reinterpret_cast<std::uint64_t>(device);
  if (bits >> 48 != kTag) return std::nullopt;
  return Handle{.generation = static_cast<unsigned>(bits >> 32 & 0xFFFFU),
                .returns = static_cast<unsigned>(bits >> 16 & 0xFFFFU),
                .device = static_cast<unsigned>(bits & 0xFFU),
                .instance = static_cast<unsigned>(bits >> 8 & 0xFFU)};
}

Call::Call(const char* function) : function_(function) {
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  const auto known = library.calls.find(std::string_view(function));
  if (known != library.calls.end()) {
    ++known->second;
  } else {
    library.calls.emplace(function, 1);
  }
  ++library.under_way;
  if (library.inits > 0) scenario_ = library.scenario;
}

Call::~Call() {
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  --library.under_way;
}

void Call::delay(const Facts& facts) {
  Library& library = Library::instance();
  if (const auto window = facts.hang(function_, library.clock.now())) library.hang(*window);
  const double milliseconds = facts.latency_ms(function_, library.clock.now());
  if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  now_ = library.clock.now();
}

unsigned Call::enter() {
  if (scenario_ == nullptr) {
    Library::instance().violation(std::string(function_) + " without nvmlInit_v2");
    return nvml::kUninitialized;
  }
  delay(scenario_->system);
  return scenario_->system.error(function_, now_);
}

unsigned Call::enter_device(std::size_t number) {
  device_ = &scenario_->devices.at(number);
  delay(device_->facts);
  if (device_->is_lost(now_)) return nvml::kGpuIsLost;
  const auto& windows = device_->reset_required;
  if (std::any_of(windows.begin(), windows.end(), [&](const Window& w) { return w.holds(now_); })) {
    return nvml::kResetRequired;
  }
  return device_->facts.error(function_, now_);
}

unsigned Call::enter(nvml::Device device) {
  if (const unsigned error = enter()) return error;
  const auto handle = decode(device);
  if (!handle || handle->device >= scenario_->devices.size()) return nvml::kInvalidArgument;
  handle_ = *handle;
  Library& library = Library::instance();
  {
    const std::lock_guard lock(library.mutex);
    if (handle_.generation != (library.generation & 0xFFFFU)) {
      library.violations += std::string(function_) + " with a handle of an earlier nvmlInit_v2\n";
      return nvml::kInvalidArgument;
    }
  }
  if (const unsigned error = enter_device(handle_.device)) return error;
  if (handle_.returns != device_->returns(now_)) return nvml::kGpuIsLost;
  if (handle_.instance == 0) return nvml::kSuccess;
  prefix_ = "mig.instances." + std::to_string(handle_.instance - 1) + ".";
  const Value present = at("present");
  return present.error == nvml::kSuccess && present.number == 0 ? nvml::kInvalidArgument : nvml::kSuccess;
}

unsigned Call::read_address(std::string_view path, nvml::PciInfo* out) const {
  if (out == nullptr) return nvml::kInvalidArgument;
  const Value id = at(path);
  if (id.error != nvml::kSuccess) return id.error;
  *out = {};
  unsigned function = 0;
  if (std::sscanf(id.text.c_str(), "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) != 4) {
    return nvml::kUnknown;
  }
  std::snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.%X", out->domain, out->bus, out->device,
                function);
  std::snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.%X", out->domain & 0xFFFFU,
                out->bus & 0xFFU, out->device & 0xFFU, function & 0xFU);
  return nvml::kSuccess;
}

unsigned Call::read_text(std::string_view path, char* out, std::size_t size) const {
  if (out == nullptr) return nvml::kInvalidArgument;
  const Value value = at(path);
  if (value.error != nvml::kSuccess) return value.error;
  if (value.text.size() + 1 > size) return nvml::kInsufficientSize;
  std::memcpy(out, value.text.c_str(), value.text.size() + 1);
  return nvml::kSuccess;
}

}  // namespace gpumeter::fake_nvml
