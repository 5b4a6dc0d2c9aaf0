#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "collectors/api/drm_use.hpp"

namespace gpumeter {

/// Scans that a test writes by hand.
class FakeDrmUsers final : public DrmUsers {
 public:
  std::shared_ptr<void> watch(std::string_view device, Nanoseconds) override {
    ++watches[std::string(device)];
    return {this, [this, device = std::string(device)](void*) { --watches[device]; }};
  }
  std::shared_ptr<const DrmUse> use_of(std::string_view device) const override {
    const auto use = uses.find(std::string(device));
    return use == uses.end() ? nullptr : use->second;
  }

  void scan(const std::string& device, DrmUse use) {
    uses[device] = std::make_shared<const DrmUse>(std::move(use));
  }

  std::map<std::string, int> watches;
  std::map<std::string, std::shared_ptr<const DrmUse>> uses;
};

/// The busy seconds of some classes.
inline EngineSeconds engine_seconds(std::initializer_list<std::pair<EngineClass, double>> classes) {
  EngineSeconds seconds;
  for (const auto& [engine, value] : classes) seconds[static_cast<std::size_t>(engine)] = value;
  return seconds;
}

}  // namespace gpumeter
