#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/amd/collector.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {

/// A machine with one card at 0000:0c:00.0, for tests of the series that its files give.
class OneCard : public testing::Test {
 protected:
  OneCard() { write("uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n"); }

  void write(const std::string& name, std::string_view content) {
    tree_.write("bus/pci/devices/0000:0c:00.0/" + name, content);
  }

  /// Discovers the card again and attaches to it.
  void attach() {
    collector_ = *open_amd({tree_.path(), "/proc", &kRealClock, {{"ids_file", {tree_ / "amdgpu.ids"}}}});
    const Discovery found = *collector_->discover();
    ASSERT_EQ(found.devices.size(), 1U);
    info_ = found.devices.front();
    page_.emplace(collector_->device(info_));
    page_->attach(info_);
  }
  std::string sampled(const std::vector<std::string_view>& without = {}) {
    attach();
    page_->pass_all();
    return page_->text(without);
  }

  const Tree tree_{{}};
  std::unique_ptr<Collector> collector_;
  DeviceInfo info_;
  std::optional<SampledPage> page_;
};

}  // namespace gpumeter::amd
