#include "collectors/sources/pci.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/tree.hpp"

namespace gpumeter::pci {
namespace {

constexpr std::string_view kVga = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n";
constexpr std::string_view kSwitch = "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=1002:1478\n";
constexpr std::string_view kRootPort = "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=1022:1483\n";

std::vector<std::string> addresses(const std::vector<Function>& functions) {
  std::vector<std::string> result;
  result.reserve(functions.size());
  for (const Function& function : functions) result.push_back(to_string(function.address));
  return result;
}

TEST(Address, IsReadAndWrittenAsTheKernelDoes) {
  EXPECT_EQ(parse_address("0000:0c:00.0"), (Address{0, 0x0c, 0, 0}));
  EXPECT_EQ(parse_address("0001:C1:1F.7"), (Address{1, 0xc1, 0x1f, 7}));
  EXPECT_EQ(to_string(parse_address("10000:E1:00.0").value()), "10000:e1:00.0");
  for (const char* const text : {"", "0c:00.0", "0000:0c:00", "0000:0c:00.", "0000:0c:00.0 ", "0000-0c:00.0",
                                 "0000:0c:00:0", "00000000000:0c:00.0", "0000:-1:00.0"}) {
    EXPECT_EQ(parse_address(text), std::nullopt) << text;
  }
}

TEST(ReadFunction, TakesAllFromUeventButTheRevision) {
  const Tree tree = make_tree({{"0000:0c:00.0/uevent", kVga}, {"0000:0c:00.0/revision", "0xc0\n"}});
  const Function function = read_function(tree / "0000:0c:00.0").value();
  EXPECT_EQ(to_string(function.address), "0000:0c:00.0");
  EXPECT_EQ(function.vendor, 0x1002);
  EXPECT_EQ(function.device, 0x73bf);
  EXPECT_EQ(function.class_code, 0x030000U);
  EXPECT_EQ(function.revision, 0xc0);
  EXPECT_EQ(function.driver, "amdgpu");
}

TEST(ReadFunction, KnowsNoMoreThanThereIs) {
  const Tree tree = make_tree({{"0000:0c:00.0/uevent", ""}, {"other/uevent", kVga}});
  const Function function = read_function(tree / "0000:0c:00.0").value();
  EXPECT_EQ(function.vendor, 0);
  EXPECT_EQ(function.revision, std::nullopt);
  EXPECT_EQ(function.driver, "");
  EXPECT_FALSE(read_function(tree / "other").has_value());
}

TEST(DisplayAdapters, AreInOrderOfAddressWhateverTheirDriver) {
  const Tree tree = make_tree({
      {"bus/pci/devices/10000:01:00.0/uevent", "PCI_CLASS=30000\nPCI_ID=10DE:2204\n"},
      {"bus/pci/devices/0000:c1:00.0/uevent", kVga},
      {"bus/pci/devices/0000:0c:00.0/uevent", "PCI_CLASS=120000\nPCI_ID=1002:74A1\n"},
      {"bus/pci/devices/0000:0c:00.1/uevent", "PCI_CLASS=40300\nPCI_ID=1002:AB28\n"},
      {"bus/pci/devices/0000:02:00.0/uevent", "DRIVER=ast\nPCI_CLASS=30000\nPCI_ID=1A03:2000\n"},
  });
  const SystemClock clock;
  Scan scan("scan", clock);
  EXPECT_EQ(addresses(scan.adapters(tree.path()).adapters),
            (std::vector<std::string>{"0000:02:00.0", "0000:0c:00.0", "0000:c1:00.0", "10000:01:00.0"}));
  EXPECT_TRUE(scan.adapters(tree / "nothing").adapters.empty());
}

TEST(VendorWord, IsTheVendorLabel) {
  EXPECT_EQ(vendor_word(0x10de), "nvidia");
  EXPECT_EQ(vendor_word(0x1002), "amd");
  EXPECT_EQ(vendor_word(0x8086), "intel");
  EXPECT_EQ(vendor_word(0x1a03), "other");
}

TEST(IsGpuDriver, IsFalseForConsolesAndForNone) {
  for (const char* const driver : {"amdgpu", "radeon", "nvidia", "nouveau", "i915", "xe"}) {
    EXPECT_TRUE(is_gpu_driver(driver)) << driver;
  }
  for (const char* const driver : {"", "ast", "mgag200", "simpledrm", "bochs-drm", "cirrus", "vfio-pci"}) {
    EXPECT_FALSE(is_gpu_driver(driver)) << driver;
  }
}

TEST(UpstreamPort, IsTheTopOfTheCardsOwnSwitch) {
  const Tree tree = make_tree({{"0000:00:01.1/uevent", kRootPort},
                               {"0000:00:01.1/0000:0a:00.0/uevent", kSwitch},
                               {"0000:00:01.1/0000:0a:00.0/0000:0b:00.0/uevent", kSwitch},
                               {"0000:00:01.1/0000:0a:00.0/0000:0b:00.0/0000:0c:00.0/uevent", kVga}});
  const Function card = read_function(tree / "0000:00:01.1/0000:0a:00.0/0000:0b:00.0/0000:0c:00.0").value();
  EXPECT_EQ(upstream_port(card), tree / "0000:00:01.1/0000:0a:00.0");
}

TEST(UpstreamPort, IsTheCardItselfBelowARootPortOfWhateverVendor) {
  const Tree tree = make_tree({{"0000:00:01.1/uevent", kRootPort},
                               {"0000:00:01.1/0000:03:00.0/uevent", kVga},
                               {"0000:00:02.0/uevent", kSwitch},  // chipsets of 2010 have root ports by ATI
                               {"0000:00:02.0/0000:04:00.0/uevent", kVga}});
  for (const char* const path : {"0000:00:01.1/0000:03:00.0", "0000:00:02.0/0000:04:00.0"}) {
    EXPECT_EQ(upstream_port(read_function(tree / path).value()), tree / path);
  }
}

TEST(LinkGeneration, IsReadFromTheSpeedInWords) {
  EXPECT_EQ(link_generation("2.5 GT/s PCIe"), 1);
  EXPECT_EQ(link_generation("5.0 GT/s PCIe"), 2);
  EXPECT_EQ(link_generation("8 GT/s"), 3);
  EXPECT_EQ(link_generation("16.0 GT/s PCIe"), 4);
  EXPECT_EQ(link_generation("32.0 GT/s PCIe"), 5);
  EXPECT_EQ(link_generation("64.0 GT/s PCIe"), 6);
  EXPECT_EQ(link_generation("Unknown"), std::nullopt);
  EXPECT_EQ(link_generation("3.0 GT/s PCIe"), std::nullopt);
}

TEST(HasPlaceholderLink, MeansOneLaneOfTheFirstGeneration) {
  const auto is_placeholder = [](std::string_view speed, std::string_view width) {
    const Tree tree = make_tree({{"max_link_speed", speed}, {"max_link_width", width}});
    return has_placeholder_link(tree.path());
  };
  EXPECT_TRUE(is_placeholder("2.5 GT/s PCIe\n", "1\n"));
  EXPECT_FALSE(is_placeholder("5.0 GT/s PCIe\n", "1\n"));
  EXPECT_FALSE(is_placeholder("2.5 GT/s PCIe\n", "16\n"));
  EXPECT_FALSE(has_placeholder_link("/nowhere"));
}

TEST(LocalCpus, AreTheKernelsList) {
  const Tree tree =
      make_tree({{"0000:0c:00.0/uevent", kVga}, {"0000:0c:00.0/local_cpulist", "0-15,32-47\n"}});
  EXPECT_EQ(local_cpus(read_function(tree / "0000:0c:00.0").value()), "0-15,32-47");
}

TEST(IsSuspended, CountsFallingAsleepToo) {
  EXPECT_TRUE(is_suspended("suspended"));
  EXPECT_TRUE(is_suspended("suspending"));
  for (const char* const status : {"active", "resuming", "unsupported", "error", ""}) {
    EXPECT_FALSE(is_suspended(status)) << status;
  }
}

}  // namespace
}  // namespace gpumeter::pci
