#include <gtest/gtest.h>

#include "collectors/intel/gts.hpp"
#include "tests/fakes/intel_card_test.hpp"

namespace gpumeter::intel {
namespace {

TEST(ActiveReasons, AreWordsOrNone) {
  EXPECT_EQ(active_reasons("none\n"), 0U);
  EXPECT_EQ(active_reasons(""), 0U);
  EXPECT_EQ(active_reasons("pl1 thermal\n"), mask_of_reason("pl1") | mask_of_reason("thermal"));
  EXPECT_EQ(active_reasons("reason_vr_tdc"), mask_of_reason("vr_tdc"));
  EXPECT_EQ(active_reasons("moonlight"), mask_of_reason("other"));
}

TEST(ThrottleCauses, EveryReasonHasOne) {
  ThrottleMask all = 0;
  for (const std::string_view cause : kThrottleCauses) {
    EXPECT_EQ(all & mask_of_cause(cause), 0U);
    all |= mask_of_cause(cause);
  }
  EXPECT_EQ(all, (ThrottleMask{1} << kThrottleReasonCount) - 1);
}

class XeThrottle : public OneIntelCard {
 protected:
  void reason(const std::string& name, std::string_view content, int gt = 0) {
    write("tile0/gt" + std::to_string(gt) + "/freq0/throttle/" + name, content);
  }
  std::string gauges() { return sampled({"gpu_throttle_seconds", "gpu_throttle_reason_seconds"}); }
};

TEST_F(XeThrottle, TheFolderListsTheReasons) {
  reason("status", "1\n");
  reason("reason_pl1", "1\n");
  reason("reason_prochot", "0\n");
  EXPECT_EQ(gauges(),
            "gpu_throttle_reason_active{cause=\"hardware\",reason=\"prochot\"} 0\n"
            "gpu_throttle_reason_active{cause=\"power\",reason=\"pl1\"} 1\n"
            "gpu_throttled{cause=\"hardware\"} 0\n"
            "gpu_throttled{cause=\"power\"} 1\n");
}

TEST_F(XeThrottle, OneTextOfAllReasonsIsPreferred) {
  reason("reasons", "thermal\n");
  reason("reason_thermal", "0\n");  // at another moment
  reason("reason_vr_tdc", "0\n");
  reason("reasons", "none\n", 1);
  reason("reason_thermal", "0\n", 1);
  EXPECT_EQ(gauges(),
            "gpu_throttle_reason_active{cause=\"current\",reason=\"vr_tdc\"} 0\n"
            "gpu_throttle_reason_active{cause=\"thermal\",reason=\"thermal\"} 1\n"
            "gpu_throttled{cause=\"current\"} 0\n"
            "gpu_throttled{cause=\"thermal\"} 1\n");
}

TEST_F(XeThrottle, ReasonsOfANewerChipAndOfAKernelYetToCome) {
  reason("reason_soc_avg_thermal", "1\n");
  reason("reason_psys_crit", "0\n");
  reason("reason_fastvmode", "0\n");
  reason("reason_iccmax", "0\n");
  reason("reason_moonlight", "1\n");
  EXPECT_EQ(gauges(),
            "gpu_throttle_reason_active{cause=\"current\",reason=\"iccmax\"} 0\n"
            "gpu_throttle_reason_active{cause=\"hardware\",reason=\"other\"} 1\n"
            "gpu_throttle_reason_active{cause=\"power\",reason=\"psys_crit\"} 0\n"
            "gpu_throttle_reason_active{cause=\"software\",reason=\"fastvmode\"} 0\n"
            "gpu_throttle_reason_active{cause=\"thermal\",reason=\"soc_avg_thermal\"} 1\n"
            "gpu_throttled{cause=\"current\"} 0\n"
            "gpu_throttled{cause=\"hardware\"} 1\n"
            "gpu_throttled{cause=\"power\"} 0\n"
            "gpu_throttled{cause=\"software\"} 0\n"
            "gpu_throttled{cause=\"thermal\"} 1\n");
}

TEST_F(XeThrottle, TimeIsCountedAtMostOncePerCause) {
  reason("reason_pl1", "1\n");
  reason("reason_pl2", "1\n", 1);
  attach();
  page_->pass(Tier::fast);
  page_->pass(Tier::fast, std::chrono::milliseconds(1000));
  EXPECT_EQ(page_->text({"gpu_throttled", "gpu_throttle_reason"}),
            "gpu_throttle_seconds_total{cause=\"power\"} 1\n");
}

class I915Throttle : public OneIntelCard {
 protected:
  I915Throttle() : OneIntelCard("i915") {}
};

TEST_F(I915Throttle, TheFilesOfAGtHaveAPrefix) {
  write("drm/card1/gt/gt0/throttle_reason_status", "1\n");
  write("drm/card1/gt/gt0/throttle_reason_vr_thermalert", "1\n");
  write("drm/card1/gt/gt0/rps_act_freq_mhz", "600\n");
  EXPECT_EQ(sampled({"gpu_throttle_seconds", "gpu_throttle_reason_seconds"}),
            "gpu_clock_hertz{clock=\"graphics\"} 6e+08\n"
            "gpu_throttle_reason_active{cause=\"thermal\",reason=\"vr_thermalert\"} 1\n"
            "gpu_throttled{cause=\"thermal\"} 1\n");
}

}  // namespace
}  // namespace gpumeter::intel
