#include "collectors/nvidia/readers/links.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

// Shifts of NVML_GPU_FABRIC_HEALTH_MASK_*.
constexpr unsigned kTrue = 1, kFalse = 2;
constexpr unsigned mask(unsigned bandwidth, unsigned recovery, unsigned route, unsigned timeout,
                        unsigned configuration) {
  return bandwidth | recovery << 2 | route << 4 | timeout << 6 | configuration << 8;
}

TEST(FabricMask, IsSummedUp) {
  EXPECT_EQ(summed_up(0), std::nullopt);
  EXPECT_EQ(summed_up(mask(kFalse, kFalse, kFalse, kFalse, 1)), FabricHealth::healthy);
  EXPECT_EQ(summed_up(0x1AA), FabricHealth::healthy);
  EXPECT_EQ(summed_up(mask(kTrue, kFalse, kFalse, kFalse, 1)), FabricHealth::limited_capacity);
  EXPECT_EQ(summed_up(mask(kTrue, kTrue, kFalse, kFalse, 1)), FabricHealth::unhealthy);
  EXPECT_EQ(summed_up(mask(kFalse, kFalse, kTrue, kFalse, 1)), FabricHealth::unhealthy);
  EXPECT_EQ(summed_up(mask(kFalse, kFalse, kFalse, kTrue, 1)), FabricHealth::unhealthy);
  EXPECT_EQ(summed_up(mask(kFalse, kFalse, kFalse, kFalse, 4)), FabricHealth::unhealthy);
  EXPECT_EQ(summed_up(mask(kFalse, 0, 0, 0, 0)), FabricHealth::healthy);
}

/// The series of links and fabric of a GPU with these keys.
std::string links_of(const std::string& keys, bool each = false, const std::string& layouts = "{}") {
  FakeDriver driver("layouts: " + layouts + "\ndevices: [{uuid: GPU-0, " + keys + "}]");
  NvidiaGpu gpu(driver, "GPU-0", each);
  return gpu.attach().sampled();
}

constexpr const char* kTwoLinks = R"(
  nvlink: {count: 2, link: {state: active, errors: {replay: 3, crc_flit: 4}}, links: {1: {state: inactive}}},
  fields: {91: 2, 138: {scopes: {all: 1000, each: 500}}, 139: {scopes: {all: 2000, each: 1000}}})";

TEST(NvLink, SumsOverAllLinks) {
  EXPECT_EQ(links_of(kTwoLinks),
            "gpu_interconnect_errors_total{kind=\"nvlink\",error=\"crc_flit\"} 8\n"
            "gpu_interconnect_errors_total{kind=\"nvlink\",error=\"replay\"} 6\n"
            "gpu_interconnect_links_up{kind=\"nvlink\"} 1\n"
            "gpu_interconnect_links{kind=\"nvlink\"} 2\n"
            "gpu_interconnect_received_bytes_total{kind=\"nvlink\"} 2048000\n"
            "gpu_interconnect_transmitted_bytes_total{kind=\"nvlink\"} 1024000\n");
}

TEST(NvLink, EachLinkWhereTheConfigAsksForIt) {
  EXPECT_EQ(lines_of(links_of(kTwoLinks, true), {"gpu_link"}),
            "gpu_link_errors_total{kind=\"nvlink\",link=\"0\",error=\"crc_flit\"} 4\n"
            "gpu_link_errors_total{kind=\"nvlink\",link=\"0\",error=\"replay\"} 3\n"
            "gpu_link_errors_total{kind=\"nvlink\",link=\"1\",error=\"crc_flit\"} 4\n"
            "gpu_link_errors_total{kind=\"nvlink\",link=\"1\",error=\"replay\"} 3\n"
            "gpu_link_received_bytes_total{kind=\"nvlink\",link=\"0\"} 1024000\n"
            "gpu_link_received_bytes_total{kind=\"nvlink\",link=\"1\"} 1024000\n"
            "gpu_link_transmitted_bytes_total{kind=\"nvlink\",link=\"0\"} 512000\n"
            "gpu_link_transmitted_bytes_total{kind=\"nvlink\",link=\"1\"} 512000\n"
            "gpu_link_up{kind=\"nvlink\",link=\"0\"} 1\n"
            "gpu_link_up{kind=\"nvlink\",link=\"1\"} 0\n");
  EXPECT_EQ(lines_of(links_of(kTwoLinks), {"gpu_link"}), "");
}

TEST(NvLink, AFieldOfAllLinksGoesBeforeASumLinkByLink) {
  const std::string text = links_of(R"(
    nvlink: {count: 2, link: {state: active, errors: {replay: 3}}}, fields: {52: 7})");
  EXPECT_EQ(text,
            "gpu_interconnect_errors_total{kind=\"nvlink\",error=\"replay\"} 7\n"
            "gpu_interconnect_links_up{kind=\"nvlink\"} 2\n");
}

TEST(NvLink, WithoutLinksIsAbsentAndNotZero) { EXPECT_EQ(links_of("fields: {91: 0}"), ""); }

constexpr const char* kLimited =
    "fabric: {state: completed, status: success, clique: 0, health_mask: 0x1A9, health_summary: "
    "limited_capacity}";
constexpr const char* kLimitedText =
    "gpu_fabric_health{state=\"healthy\"} 0\n"
    "gpu_fabric_health{state=\"limited_capacity\"} 1\n"
    "gpu_fabric_health{state=\"unhealthy\"} 0\n"
    "gpu_fabric_info{clique=\"0\"} 1\n"
    "gpu_fabric_state{state=\"completed\"} 1\n"
    "gpu_fabric_state{state=\"failed\"} 0\n"
    "gpu_fabric_state{state=\"in_progress\"} 0\n"
    "gpu_fabric_state{state=\"not_started\"} 0\n";

TEST(Fabric, TheDriverSumsUpItsHealth) { EXPECT_EQ(links_of(kLimited), kLimitedText); }

TEST(Fabric, TheSecondLayoutsMaskSaysTheSame) {
  EXPECT_EQ(links_of(kLimited, false, "{fabric: 2}"), kLimitedText);
}

std::string fabric_of(const std::string& fabric) {
  return lines_of(links_of("fabric: {" + fabric + "}"), {"gpu_fabric_info", "gpu_fabric_state"});
}

std::string only(const std::string& holds) {
  std::string text;
  for (const std::string state : {"completed", "failed", "in_progress", "not_started"})
    text += "gpu_fabric_state{state=\"" + state + "\"} " + (state == holds ? "1" : "0") + "\n";
  return text;
}

TEST(Fabric, ARegistrationThatEndedWithAnErrorHasFailed) {
  EXPECT_EQ(
      fabric_of(
          "state: completed, status: 999, clique: 3, cluster_uuid: 5b2f0c1a-0000-4000-8000-000000000001"),
      only("failed"));
  EXPECT_EQ(fabric_of("state: in_progress, status: 999"),
            only("in_progress"));  // the status has no data yet
}

TEST(Fabric, ItsCliqueAndClusterAreAnInfoSeries) {
  EXPECT_EQ(
      fabric_of(
          "state: completed, status: success, clique: 3, cluster_uuid: 5b2f0c1a-0000-4000-8000-0000000000ff"),
      "gpu_fabric_info{clique=\"3\",cluster_uuid=\"5b2f0c1a-0000-4000-8000-0000000000ff\"} 1\n" +
          only("completed"));
}

TEST(Fabric, AGpuThatIsRegisteredLaterIsBoundAgain) {
  FakeDriver driver(R"(
devices: [{uuid: GPU-0, temperature: {gpu: 50}, fabric: {state: {steps: [[0, in_progress], [60, completed]]}, status: success, clique: 7}}]
)");
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_FALSE(gpu.page().has_more(std::chrono::seconds(1)));
  EXPECT_EQ(gpu.lines({"gpu_fabric"}), only("in_progress"));
  gpu.pass(Tier::slow, 60, 1);
  EXPECT_TRUE(gpu.page().has_more(std::chrono::seconds(60)));
  gpu.attach(60).sampled(60);
  EXPECT_EQ(gpu.lines({"gpu_fabric"}), "gpu_fabric_info{clique=\"7\"} 1\n" + only("completed"));
  EXPECT_FALSE(gpu.page().has_more(std::chrono::seconds(61)));
}

TEST(Fabric, AnOlderLibraryIsAskedOncePerPassAndNotOncePerRow) {
  FakeDriver driver(std::string("layouts: {fabric: 2}\ndevices: [{uuid: GPU-0, ") + kLimited + "}]");
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  const auto before = driver.calls("nvmlDeviceGetGpuFabricInfoV");
  gpu.pass(Tier::slow, 60, 1);
  EXPECT_EQ(driver.calls("nvmlDeviceGetGpuFabricInfoV") - before, 1U);
}

TEST(Fabric, OneThatIsNotSupportedIsAbsent) {
  EXPECT_EQ(links_of("fabric: {state: not_supported, status: success, health_mask: 0, health_summary: 0}"),
            "");
}

}  // namespace
}  // namespace gpumeter::nvidia
