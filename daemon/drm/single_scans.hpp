#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "collectors/api/drm_use.hpp"
#include "collectors/sources/fdinfo/scanner.hpp"

namespace gpumeter {

/// The clients of DRM devices for commands that print and exit: scans when it is told to, without a thread.
/// One thread.
class SingleScans final : public DrmUsers {
 public:
  explicit SingleScans(fdinfo::Scanner::Sources sources) : scanner_(std::move(sources)) {}

  /// Watches are for the object's lifetime.
  std::shared_ptr<void> watch(std::string_view device, Nanoseconds every) override;
  std::shared_ptr<const DrmUse> use_of(std::string_view device) const override;

  /// Looks at every process once, for kAtMost; does nothing if no device is watched. May block.
  void scan();
  static constexpr Nanoseconds kAtMost = std::chrono::seconds(2);

 private:
  fdinfo::Scanner scanner_;
  std::set<std::string, std::less<>> devices_;
  std::map<std::string, std::shared_ptr<const DrmUse>, std::less<>> uses_;
};

}  // namespace gpumeter
