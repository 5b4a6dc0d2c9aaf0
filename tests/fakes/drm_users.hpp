#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "collectors/api/drm_use.hpp"

namespace gpumeter {

/// A scanner of /proc/PID/fdinfo whose scans the test writes, by device.
class FakeDrmUsers final : public DrmUsers {
 public:
  std::shared_ptr<void> watch(std::string_view device, Nanoseconds) override {
    watched = device;
    return std::make_shared<int>();
  }
  std::shared_ptr<const DrmUse> use_of(std::string_view device) const override {
    const auto found = uses.find(std::string(device));
    return found == uses.end() ? nullptr : found->second;
  }

  std::string watched;  ///< the last one
  std::map<std::string, std::shared_ptr<const DrmUse>> uses;
};

}  // namespace gpumeter
