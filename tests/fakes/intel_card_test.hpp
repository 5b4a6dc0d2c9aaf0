#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/intel/card.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::intel {

/// A machine with one Intel card at 0000:03:00.0, for tests of the series that its files give.
class OneIntelCard : public testing::Test {
 protected:
  explicit OneIntelCard(std::string driver = "xe") {
    environment_.roots.sysfs = tree_.path();
    info_.driver = std::move(driver);
    info_.pci_address = "0000:03:00.0";
    info_.uuid = info_.pci_address;
    info_.minor = "128";
    info_.source = tree_ / "bus/pci/devices/0000:03:00.0";
    write("uevent", "DRIVER=" + info_.driver + "\nPCI_CLASS=30000\nPCI_ID=8086:56A5\n");
  }

  /// Writes a file of the card's function.
  void write(const std::string& name, std::string_view content) {
    tree_.write("bus/pci/devices/0000:03:00.0/" + name, content);
  }

  void attach() {
    page_.emplace(intel_device(environment_, info_.driver));
    page_->attach(info_);
  }
  std::string sampled(const std::vector<std::string_view>& without = {}) {
    attach();
    page_->pass_all();
    return page_->text(without);
  }

  const Tree tree_{{}};
  Environment environment_;
  DeviceInfo info_;
  std::optional<SampledPage> page_;
};

}  // namespace gpumeter::intel
