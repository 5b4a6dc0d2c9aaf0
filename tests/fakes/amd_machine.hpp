#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "collectors/sources/pci.hpp"
#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {

inline constexpr std::pair<std::string_view, std::string_view> kRadeonFiles[] = {
    {"uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n"},
    {"revision", "0xc0\n"},
    {"power/runtime_status", "active\n"},
    {"current_link_speed", "16.0 GT/s PCIe\n"},
    {"current_link_width", "16\n"},
    {"max_link_speed", "16.0 GT/s PCIe\n"},
    {"max_link_width", "16\n"},
    {"pcie_replay_count", "0\n"},
    {"gpu_busy_percent", "93\n"},
    {"mem_busy_percent", "41\n"},
    {"mem_info_vram_total", "17163091968\n"},
    {"mem_info_vram_used", "668274688\n"},
    {"mem_info_vis_vram_total", "17163091968\n"},
    {"mem_info_vis_vram_used", "668274688\n"},
    {"mem_info_gtt_total", "16786171904\n"},
    {"mem_info_gtt_used", "62369792\n"},
    {"hwmon/hwmon1/name", "amdgpu\n"},
    {"hwmon/hwmon1/temp1_label", "edge\n"},
    {"hwmon/hwmon1/temp1_input", "56000\n"},
    {"hwmon/hwmon1/temp1_crit", "100000\n"},
    {"hwmon/hwmon1/temp1_emergency", "105000\n"},
    {"hwmon/hwmon1/temp2_label", "junction\n"},
    {"hwmon/hwmon1/temp2_input", "59000\n"},
    {"hwmon/hwmon1/temp2_crit", "110000\n"},
    {"hwmon/hwmon1/temp2_emergency", "115000\n"},
    {"hwmon/hwmon1/temp3_label", "mem\n"},
    {"hwmon/hwmon1/temp3_input", "54000\n"},
    {"hwmon/hwmon1/temp3_crit", "100000\n"},
    {"hwmon/hwmon1/temp3_emergency", "105000\n"},
    {"hwmon/hwmon1/power1_average", "236000000\n"},
    {"hwmon/hwmon1/power1_cap", "289000000\n"},
    {"hwmon/hwmon1/power1_cap_default", "289000000\n"},
    {"hwmon/hwmon1/power1_cap_min", "0\n"},
    {"hwmon/hwmon1/power1_cap_max", "332000000\n"},
    {"hwmon/hwmon1/freq1_label", "sclk\n"},
    {"hwmon/hwmon1/freq1_input", "2400000000\n"},
    {"hwmon/hwmon1/freq2_label", "mclk\n"},
    {"hwmon/hwmon1/freq2_input", "1000000000\n"},
    {"hwmon/hwmon1/in0_label", "vddgfx\n"},
    {"hwmon/hwmon1/in0_input", "775\n"},
    {"hwmon/hwmon1/fan1_input", "1400\n"},
    {"hwmon/hwmon1/pwm1", "102\n"},
    {"hwmon/hwmon1/pwm1_max", "255\n"},
};

/// gpu_metrics 1.3 as a busy Radeon fills it.
inline std::string radeon_blob() {
  return FakeBlob()
      .set("temperature_vrgfx", 49)
      .set("temperature_vrsoc", 48)
      .set("temperature_vrmem", 51)
      .set("current_socclk", 800)
      .set("current_vclk0", 33)
      .set("voltage_soc", 818)
      .set("voltage_mem", 1356)
      .set("indep_throttle_status", 1)
      .bytes();
}

/// Folder of card `i` below the root of such a machine.
inline std::string radeon_folder(int i) {
  const pci::Address address{0, static_cast<std::uint8_t>(3 + i), 0, 0};
  return "bus/pci/devices/" + pci::to_string(address) + "/";
}

/// A machine with `count` Radeon cards, from 0000:03:00.0 upwards. Each has all the files that the collector
/// reads.
inline std::unique_ptr<Tree> make_radeon_machine(int count) {
  auto tree = std::make_unique<Tree>(Tree::Files{});
  for (int i = 0; i < count; ++i) {
    for (const auto& [name, content] : kRadeonFiles)
      tree->write(radeon_folder(i) + std::string(name), content);
    tree->write(radeon_folder(i) + "gpu_metrics", radeon_blob());
  }
  return tree;
}

}  // namespace gpumeter::amd
