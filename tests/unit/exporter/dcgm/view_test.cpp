#include "exporter/dcgm/view.hpp"

#include <gtest/gtest.h>

#include <set>

#include "collectors/api/catalog.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::dcgm {
namespace {

constexpr MetricDescriptor kPartitionUtilization{"gpu_partition_utilization_ratio", "Busy.", "ratio",
                                                 MetricType::gauge};
constexpr MetricDescriptor kPartitionUsed{"gpu_partition_memory_used_bytes", "Used.", "bytes",
                                          MetricType::gauge};

class DcgmViewTest : public testing::Test {
 protected:
  void add(const MetricDescriptor& family, double value, std::initializer_list<Label> more = {}) {
    list_.add(family, Labels{{"gpu", "1"}, {"uuid", "GPU-1"}}.with(more), value);
  }
  /// A card as in the page of dcgm-exporter's issue 512.
  void add_card() {
    add(catalog::info, 1,
        {{"vendor", "nvidia"},
         {"model", "NVIDIA H100 80GB HBM3"},
         {"driver_version", "535.129.03"},
         {"pci_address", "0000:1a:00.0"},
         {"vendor_index", "0"}});
  }
  std::string page(Version version = Version::v4_8, Format format = Format::text, const Filter& filter = {}) {
    list_.commit({});
    return render(store_, version, format, filter, "node-74").text;
  }

  Store store_;
  SeriesList list_{store_.attach("nvidia")};
};

constexpr std::string_view kCard =
    "gpu=\"0\",UUID=\"GPU-1\",pci_bus_id=\"00000000:1A:00.0\",device=\"nvidia0\",modelName=\"NVIDIA H100 "
    "80GB "
    "HBM3\"";
constexpr std::string_view kHost = ",Hostname=\"node-74\",DCGM_FI_DRIVER_VERSION=\"535.129.03\"";

std::string line(std::string_view name, std::string_view more, std::string_view value,
                 std::string_view host = kHost) {
  return std::string(name) + "{" + std::string(kCard) + std::string(more) + std::string(host) + "} " +
         std::string(value) + "\n";
}

TEST_F(DcgmViewTest, HasTheNamesUnitsAndLabelsOf48) {
  add_card();
  add(catalog::clock, 1.98e9, {{"clock", "sm"}});
  add(catalog::energy_joules, 5.25);
  add(catalog::memory_used, 3.0 * 1048576, {{"memory", "vram"}});
  add(catalog::memory_used, 7, {{"memory", "bar1"}});
  EXPECT_EQ(page(),
            "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n"
            "# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n" +
                line("DCGM_FI_DEV_SM_CLOCK", "", "1980") +
                "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy consumption (in mJ).\n"
                "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n" +
                line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "", "5250") +
                "# HELP DCGM_FI_DEV_FB_USED Used framebuffer memory (in MiB).\n"
                "# TYPE DCGM_FI_DEV_FB_USED gauge\n" +
                line("DCGM_FI_DEV_FB_USED", "", "3"));
}

TEST_F(DcgmViewTest, HasTheNamesUnitsAndLabelsOf49) {
  add_card();
  add(catalog::energy_joules, 5.25);
  add(catalog::throttle_seconds, 1, {{"cause", "thermal"}});  // its new name is unknown
  constexpr std::string_view kNewHost = ",hostname=\"node-74\",DCGM_FI_SYSTEM_DRIVER_VERSION=\"535.129.03\"";
  EXPECT_EQ(page(Version::v4_9),
            "# HELP DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL Total energy consumption (in J).\n"
            "# TYPE DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL counter\n" +
                line("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "", "5.25", kNewHost));
}

TEST_F(DcgmViewTest, CallsCountersUnknownInOpenMetrics) {
  add_card();
  add(catalog::pcie_replays, 3);
  EXPECT_EQ(page(Version::v4_8, Format::openmetrics),
            "# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER unknown\n"
            "# HELP DCGM_FI_DEV_PCIE_REPLAY_COUNTER PCIe retries.\n" +
                line("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "", "3") + "# EOF\n");
}

TEST_F(DcgmViewTest, ShowsTheInstancesOfADividedCardInItsPlace) {
  add_card();
  add(catalog::utilization, 0.9);
  add(kPartitionUtilization, 0.25, {{"partition", "1g.10gb:7"}});
  add(catalog::memory_used, 5e9, {{"memory", "vram"}});
  add(kPartitionUsed, 1048576, {{"memory", "vram"}, {"partition", "1g.10gb:7"}});
  const std::string text = page();
  constexpr std::string_view kInstance = ",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"7\"";
  EXPECT_NE(text.find(line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", kInstance, "0.25")), std::string::npos) << text;
  EXPECT_NE(text.find(line("DCGM_FI_DEV_FB_USED", kInstance, "1")), std::string::npos) << text;
  EXPECT_EQ(text.find(line("DCGM_FI_DEV_FB_USED", "", "4768.37158203125")), std::string::npos);
}

TEST_F(DcgmViewTest, UsesTheWholeCardsUtilizationBeforeHopper) {
  add_card();
  add(catalog::utilization, 0.5);
  EXPECT_NE(page().find(line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "", "0.5")), std::string::npos);
}

TEST_F(DcgmViewTest, ShowsTheCodeOfTheLastXid) {
  add_card();
  add(catalog::xid_errors, 0, {{"xid", "31"}});
  EXPECT_NE(page().find(line("DCGM_FI_DEV_XID_ERRORS", "", "0")), std::string::npos);
  add_card();
  add(catalog::xid_errors, 1, {{"xid", "31"}});
  add(catalog::xid_last_timestamp, 100, {{"xid", "31"}});
  add(catalog::xid_last_timestamp, 90, {{"xid", "79"}});
  add(catalog::xid_last_timestamp, 200, {{"xid", "other"}});
  EXPECT_NE(page().find(line("DCGM_FI_DEV_XID_ERRORS", "", "31")), std::string::npos);
}

TEST_F(DcgmViewTest, AddsTheOnlyPodOfACard) {
  const auto pod = [&](const std::string& name) {
    add(catalog::workload_share, 1, {{"kind", "pod"}, {"workload", name}});
    list_.add(catalog::workload_info,
              Labels{{"kind", "pod"},
                     {"workload", name},
                     {"k8s_namespace", "default"},
                     {"k8s_pod", name},
                     {"k8s_container", "triton"}},
              1);
  };
  add_card();
  add(catalog::power, 300);
  pod("triton-1");
  const std::string host =
      std::string(kHost) + ",container=\"triton\",namespace=\"default\",pod=\"triton-1\"";
  EXPECT_NE(page().find(line("DCGM_FI_DEV_POWER_USAGE", "", "300", host)), std::string::npos);
  add_card();
  add(catalog::power, 300);
  pod("triton-1");
  pod("triton-2");
  EXPECT_NE(page().find(line("DCGM_FI_DEV_POWER_USAGE", "", "300")), std::string::npos) << "shared";
  add_card();
  add(catalog::power, 300);
  pod("triton-2");
  list_.add(catalog::workload_info,
            Labels{{"kind", "pod"},
                   {"workload", "idle"},
                   {"source", "allocation"},
                   {"k8s_namespace", "default"},
                   {"k8s_pod", "triton-1"},
                   {"k8s_container", "triton"}},
            1);
  add(catalog::allocation_info, 1, {{"kind", "pod"}, {"workload", "idle"}, {"source", "kubelet"}});
  EXPECT_NE(page().find(line("DCGM_FI_DEV_POWER_USAGE", "", "300", host)), std::string::npos)
      << "the pod that was given the card, although it is idle";
}

TEST_F(DcgmViewTest, LeavesOutOtherVendorsAndCollectors) {
  add(catalog::info, 1, {{"vendor", "amd"}});
  add(catalog::power, 300);
  EXPECT_EQ(page(), "");
  add_card();
  add(catalog::power, 300);
  EXPECT_EQ(page(Version::v4_8, Format::text, {.collect = {}, .exclude = {"nvidia"}}), "");
  add_card();
  add(catalog::power, 300);
  EXPECT_NE(page(), "");
}

}  // namespace
}  // namespace gpumeter::dcgm
