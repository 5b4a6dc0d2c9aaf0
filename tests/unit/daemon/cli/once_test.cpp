#include "daemon/cli/once.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/paths.hpp"
#include "collectors/builtin.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

config::Config config_of(const Tree& tree) {
  config::Config config;
  config.edit<Paths>().sysfs = tree.path();
  config.edit<Paths>().state = tree / "state";
  config.collectors["amd"].options["ids_file"] = {tree / "amdgpu.ids"};
  config.collectors["nvidia"].enabled = options::Enabled::off;
  for (const CollectorEntry& entry : builtin_collectors()) config.collectors[std::string(entry.name)];
  return config;
}

TEST(ListDevicesTest, NothingThere) {
  const Tree tree({{"bus/pci/devices/.keep", ""}});
  EXPECT_EQ(device_list(config_of(tree)), "no GPU found\n");
}

TEST(ListDevicesTest, WhatACardIsReadFromAndWhyTheRestIsNot) {
  const std::string card = "bus/pci/devices/0000:0c:00.0";
  const Tree tree({{card + "/uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n"},
                   {card + "/gpu_busy_percent", "3\n"},
                   {card + "/mem_info_vram_total", "1000\n"},
                   {card + "/hwmon/hwmon4/name", "amdgpu\n"},
                   {card + "/pp_dpm_sclk", "0: 500Mhz *\n"},
                   {"class/kfd/kfd/topology/nodes/0/properties", "simd_count 0\n"}});
  const std::string at = tree / card;
  const std::string kfd = tree / "class/kfd/kfd/topology/nodes";
  EXPECT_EQ(device_list(config_of(tree)),
            "GPU  UUID          MODEL     PCI ADDRESS   DRIVER  COLLECTOR\n"
            "0    0000:0c:00.0  AMD 73bf  0000:0c:00.0  amdgpu  amd\n"
            "\n"
            "GPU  SOURCE         STATE   FROM\n"
            "0    utilization    read    " +
                at +
                "/gpu_busy_percent\n"
                "0    memory         read    " +
                at +
                "/mem_info_vram_total\n"
                "0    sensors        read    " +
                at +
                "/hwmon/hwmon4/name\n"
                "0    gpu_metrics    absent  " +
                at +
                "/gpu_metrics (chips before Vega have none)\n"
                "0    clock limits   read    " +
                at +
                "/pp_dpm_sclk\n"
                "0    memory errors  absent  " +
                at +
                "/ras/features (only on chips and boards with ECC memory)\n"
                "0    pcie errors    absent  " +
                at +
                "/aer_dev_fatal (needs a kernel with CONFIG_PCIEAER and a root port that reports errors)\n"
                "0    compute units  read    " +
                kfd + "\n");
}

}  // namespace
}  // namespace gpumeter
