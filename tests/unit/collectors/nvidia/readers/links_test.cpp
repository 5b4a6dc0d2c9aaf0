#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "collectors/nvidia/readers.hpp"
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
  EXPECT_EQ(summed_up(mask(kFalse, kFalse, kFalse, kFalse, 4)), FabricHealth::healthy) << "no partition yet";
  EXPECT_EQ(summed_up(mask(kFalse, kFalse, kFalse, kFalse, 5)), FabricHealth::unhealthy);
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
  EXPECT_EQ(lines_of(links_of(kTwoLinks), {"gpu_link"}), "") << "nothing new, and link 1 was never up";
}

/// The links that have series, "0 14 ", after so many minutes.
std::string shown_after(const std::string& keys, int minutes) {
  FakeDriver driver("devices: [{uuid: GPU-0, " + keys + "}]");
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  for (int minute = 1; minute <= minutes; ++minute) {
    const int now = 60 * minute;
    for (const Tier tier : {Tier::fast, Tier::slow}) gpu.pass(tier, now, 60);
    if (gpu.page().has_more(std::chrono::seconds(now))) gpu.attach(now).sampled(now);
  }
  std::istringstream lines(gpu.lines({"gpu_link_up"}));
  std::string links;
  for (std::string line; std::getline(lines, line);)
    links += line.substr(line.find("link=\"") + 6, line.rfind('"') - line.find("link=\"") - 6) + " ";
  return links;
}

TEST(NvLink, ALinkThatIsActiveWithoutTrafficIsNotUpAndOneThatSleepsIs) {
  EXPECT_EQ(lines_of(links_of("nvlink: {count: 4}, fields: {165: {scopes: {0: active, 1: sleep, "
                              "2: traffic_disabled, 3: inactive}}}"),
                     {"gpu_interconnect_links_up", "gpu_link_up"}),
            "gpu_interconnect_links_up{kind=\"nvlink\"} 2\n"
            "gpu_link_up{kind=\"nvlink\",link=\"2\"} 0\n");
}

TEST(NvLink, TheLinksThatHaveSomethingToSayHaveSeriesOfTheirOwn) {
  EXPECT_EQ(shown_after("nvlink: {count: 18, link: {state: active}}, fields: {213: {scopes: {each: 0}}}", 3),
            "");
  EXPECT_EQ(
      shown_after("nvlink: {count: 18, link: {state: active}}, fields: {213: {scopes: {14: 1, each: 0}}}", 0),
      "14 ");
  EXPECT_EQ(shown_after("nvlink: {count: 18, link: {state: {steps: [[0, active]]}}, "
                        "links: {9: {state: {steps: [[0, active], [100, inactive]]}}}}",
                        3),
            "9 ");
  // Replays from before are no news; new ones are.
  EXPECT_EQ(shown_after("nvlink: {count: 2, link: {state: active, errors: {replay: 7, recovery: 0}}}", 3),
            "");
  EXPECT_EQ(shown_after("nvlink: {count: 2, link: {state: active, errors: {replay: 7, recovery: 0}}, "
                        "links: {1: {errors: {replay: {steps: [[0, 7], [100, 8]]}}}}}",
                        3),
            "1 ");
}

TEST(NvLink, AtMostTheWorstFourHaveSeries) {
  const std::string noisy =
      "nvlink: {count: 72, link: {state: active}}, fields: {213: {scopes: {2: 5, 9: 7, 30: 8, 40: "
      "6, 70: 9, each: 0}}, 214: {scopes: {71: {steps: [[0, 0], [100, 1]]}, each: 0}}}";
  EXPECT_EQ(shown_after(noisy, 1), "30 40 70 9 ");
  EXPECT_EQ(shown_after(noisy, 3), "30 70 71 9 ") << "a failed recovery is worse than any that succeeded";
}

TEST(NvLink, AFieldOfAllLinksGoesBeforeASumLinkByLink) {
  const std::string text = links_of(R"(
    nvlink: {count: 2, link: {state: active, errors: {replay: 3}}}, fields: {52: 7})");
  EXPECT_EQ(text,
            "gpu_interconnect_errors_total{kind=\"nvlink\",error=\"replay\"} 7\n"
            "gpu_interconnect_links_up{kind=\"nvlink\"} 2\n");
}

// NVLink 5: fields 202 to 222 of each link, and of all only where the driver has the sum.
constexpr const char* kFifth = R"(
  nvlink: {count: 2, link: {state: active}},
  fields: {91: 2, 202: {scopes: {each: 500}}, 204: {scopes: {each: 700}}, 212: {scopes: {0: 1, 1: 2}},
           213: {scopes: {0: 3, 1: 4}}, 214: {scopes: {each: 0}}, 220: {scopes: {each: 0xFFF}},
           222: {scopes: {0: 0x20C, 1: 0x307}}, 235: {scopes: {each: 1000}}, 250: {scopes: {each: 1}}})";

TEST(NvLink5, SumsTheCountersAndHasTheWorstRatioOfAllLinks) {
  EXPECT_EQ(lines_of(links_of(kFifth), {"gpu_interconnect"}),
            "gpu_interconnect_bit_error_ratio{kind=\"nvlink\",error=\"effective\"} 1.5e-254\n"
            "gpu_interconnect_bit_error_ratio{kind=\"nvlink\",error=\"symbol\"} 3e-07\n"
            "gpu_interconnect_errors_total{kind=\"nvlink\",error=\"discard\"} 3\n"
            "gpu_interconnect_errors_total{kind=\"nvlink\",error=\"recovery\"} 7\n"
            "gpu_interconnect_errors_total{kind=\"nvlink\",error=\"recovery_failed\"} 0\n"
            "gpu_interconnect_fec_history_total{kind=\"nvlink\",bin=\"0\"} 2000\n"
            "gpu_interconnect_fec_history_total{kind=\"nvlink\",bin=\"15\"} 2\n"
            "gpu_interconnect_links_up{kind=\"nvlink\"} 2\n"
            "gpu_interconnect_links{kind=\"nvlink\"} 2\n"
            "gpu_interconnect_received_bytes_total{kind=\"nvlink\"} 1400\n"
            "gpu_interconnect_transmitted_bytes_total{kind=\"nvlink\"} 1000\n");
}

TEST(NvLink5, EachLinkHasItsRatios) {
  EXPECT_EQ(lines_of(links_of(kFifth, true), {"gpu_link_bit_error_ratio{kind=\"nvlink\",link=\"1\""}),
            "gpu_link_bit_error_ratio{kind=\"nvlink\",link=\"1\",error=\"effective\"} 1.5e-254\n"
            "gpu_link_bit_error_ratio{kind=\"nvlink\",link=\"1\",error=\"symbol\"} 3e-07\n");
}

TEST(NvLink5, BytesOfAllLinksAreAHardwareCounterAboveIntegratedRates) {
  constexpr auto kRates = "gpm: {supported: yes, metrics: {60: 5, 61: 5}}, nvlink: {count: 2}, ";
  EXPECT_EQ(lines_of(links_of(std::string(kRates) +
                              "fields: {202: {scopes: {all: 9, each: 1}}, 204: {scopes: {all: 8}}}"),
                     {"gpu_interconnect_"}),
            "gpu_interconnect_received_bytes_total{kind=\"nvlink\"} 8\n"
            "gpu_interconnect_transmitted_bytes_total{kind=\"nvlink\"} 9\n");
}

TEST(NvLink5, ABitErrorRatioIsAMantissaAndANegativePowerOfTen) {
  EXPECT_EQ(bit_error_ratio(0), 0);
  EXPECT_DOUBLE_EQ(bit_error_ratio(0x100), 1);
  EXPECT_DOUBLE_EQ(bit_error_ratio(0x20C), 2e-12);
  EXPECT_DOUBLE_EQ(bit_error_ratio(0xF10C), 1e-12);  // bits above 11 belong to nothing
}

constexpr const char* kToTheCpu = R"(
  gpm: {supported: yes, metrics: {102: 10, 103: 20}},
  fields: {170: 3, 171: {scopes: {0: 1, 1: 0, 2: 1, 3: 1}}, 231: {scopes: {0: 4}}, 232: {scopes: {0: 5}}, 233: {scopes: {0: 6}}})";

TEST(C2c, CountsTheLinksThatTheDriverCounts) {
  EXPECT_EQ(lines_of(links_of(kToTheCpu), {"gpu_interconnect_links"}),
            "gpu_interconnect_links_up{kind=\"c2c\"} 2\n"
            "gpu_interconnect_links{kind=\"c2c\"} 3\n");
}

// A replay is no error of a link between GPUs, whose condition would otherwise hold.
TEST(C2c, ItsErrorsAreOfEachLinkAlone) {
  EXPECT_EQ(lines_of(links_of(kToTheCpu, true), {"gpu_link", "gpu_interconnect_errors"}),
            "gpu_link_errors_total{kind=\"c2c\",link=\"0\",error=\"crc\"} 4\n"
            "gpu_link_errors_total{kind=\"c2c\",link=\"0\",error=\"replay\"} 5\n"
            "gpu_link_errors_total{kind=\"c2c\",link=\"0\",error=\"replay_back_to_back\"} 6\n"
            "gpu_link_up{kind=\"c2c\",link=\"0\"} 1\n"
            "gpu_link_up{kind=\"c2c\",link=\"1\"} 0\n"
            "gpu_link_up{kind=\"c2c\",link=\"2\"} 1\n"
            "gpu_link_up{kind=\"c2c\",link=\"3\"} 1\n");
}

TEST(C2c, ItsBytesAreRatesIntegrated) {
  FakeDriver driver(std::string("devices: [{uuid: GPU-0, ") + kToTheCpu + "}]");
  NvidiaGpu gpu(driver);
  gpu.attach().run(1, 3);
  EXPECT_EQ(gpu.lines({"gpu_interconnect"}),
            "gpu_interconnect_received_bytes_total{kind=\"c2c\"} 41943040\n"
            "gpu_interconnect_transmitted_bytes_total{kind=\"c2c\"} 20971520\n");
}

TEST(NvLink, WithoutLinksIsAbsentAndNotZero) { EXPECT_EQ(links_of("fields: {91: 0}"), ""); }

// As an H100 without NVLink answers: no link, but rates of 0.
TEST(Links, RatesOfAKindThatTheGpuLacksAreAbsent) {
  const std::string rates = "gpm: {supported: yes, metrics: {60: 0, 61: 0, 102: 0, 103: 0}}";
  EXPECT_EQ(links_of("fields: {91: 0, 170: 0}, " + rates), "");
  EXPECT_EQ(links_of(rates), "");
  EXPECT_NE(links_of("fields: {91: 18}, " + rates).find("kind=\"nvlink\"} 0"), std::string::npos);
}

constexpr const char* kLimited =
    "fabric: {state: completed, status: success, clique: 0, health_mask: 0x1A9, health_summary: "
    "limited_capacity}";
constexpr const char* kLimitedText =
    "gpu_fabric_condition{condition=\"access_timeout\"} 0\n"
    "gpu_fabric_condition{condition=\"degraded_bandwidth\"} 1\n"
    "gpu_fabric_condition{condition=\"incompatible_firmware\"} 0\n"
    "gpu_fabric_condition{condition=\"invalid_gpu_state\"} 0\n"
    "gpu_fabric_condition{condition=\"invalid_location\"} 0\n"
    "gpu_fabric_condition{condition=\"no_partition\"} 0\n"
    "gpu_fabric_condition{condition=\"route_recovery\"} 0\n"
    "gpu_fabric_condition{condition=\"route_unhealthy\"} 0\n"
    "gpu_fabric_condition{condition=\"too_few_links\"} 0\n"
    "gpu_fabric_condition{condition=\"wrong_chassis_serial\"} 0\n"
    "gpu_fabric_condition{condition=\"wrong_system_guid\"} 0\n"
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
