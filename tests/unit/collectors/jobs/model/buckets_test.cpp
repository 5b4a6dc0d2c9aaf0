#include "collectors/jobs/model/buckets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace gpumeter::jobs {
namespace {

struct Set {
  const char* name;
  const Bounds& bounds;
  double from, to;  ///< range in which quantiles must be within 10 %
};

const Set kSets[] = {{"steps", kStepBounds, 0.0005, 600},
                     {"requests", kRequestBounds, 0.001, 600},
                     {"first tokens", kFirstTokenBounds, 0.004, 120},
                     {"between tokens", kInterTokenBounds, 0.0005, 1}};

/// The result of histogram_quantile for a run with the constant duration `seconds`: one bucket has all of
/// them.
double quantile_of_constant(Bounds bounds, double seconds, double share) {
  const auto above = std::ranges::lower_bound(bounds, seconds);
  const double below = above == bounds.begin() ? 0 : *std::prev(above);
  return below + share * (*above - below);
}

TEST(Buckets, AQuantileOfAConstantIsWithinTenPercent) {
  for (const Set& set : kSets) {
    double worst = 0;
    for (double seconds = set.from; seconds <= set.to; seconds *= 1.0007) {
      for (const double share : {0.5, 0.95, 0.99}) {
        const double error = quantile_of_constant(set.bounds, seconds, share) / seconds - 1;
        worst = std::max(worst, std::abs(error));
      }
    }
    EXPECT_LT(worst, 0.097) << set.name;
    EXPECT_GT(worst, 0.08) << set.name << ": more bounds than that takes";
  }
}

TEST(Buckets, TextsAreTheValuesAndAscend) {
  for (const Set& set : kSets) {
    double before = 0;
    for (const double bound : set.bounds) {
      const std::string text = bound_text(bound);
      EXPECT_EQ(std::strtod(text.c_str(), nullptr), bound) << text;
      EXPECT_GT(bound, before);
      EXPECT_NE(text.find('.'), std::string::npos) << text;  // OpenMetrics requires it
      EXPECT_LE(text.size(), 11U) << text;
      before = bound;
    }
  }
}

TEST(Buckets, AreAsManyAsTheLimitsOfSeriesAreMadeFor) {
  EXPECT_EQ(kStepBounds.size(), 158U);
  EXPECT_EQ(kRequestBounds.size(), 151U);
  EXPECT_EQ(kFirstTokenBounds.size(), 119U);
  EXPECT_EQ(kInterTokenBounds.size(), 89U);
}

}  // namespace
}  // namespace gpumeter::jobs
