#include "collectors/jobs/model/buckets.hpp"

#include <array>
#include <charconv>
#include <iterator>

namespace gpumeter::jobs {
namespace {

/// 10^(i/25) in thousandths. Decimal texts of four digits keep the page short; rounding adds at most 0.05 %.
constexpr int kMantissas[] = {1000, 1096, 1202, 1318, 1445, 1585, 1738, 1905, 2089, 2291, 2512, 2754, 3020,
                              3311, 3631, 3981, 4365, 4786, 5248, 5754, 6310, 6918, 7586, 8318, 9120};
constexpr int kPerDecade = std::size(kMantissas);
constexpr int kCoarse = 5;  ///< in the coarse range, only every fifth bound is used

/// A set of bounds from 10^(first/25) to 10^(last/25) seconds; from `fine_end` on it is coarser.
struct Range {
  int first, fine_end, last;

  constexpr std::size_t size() const {
    const int count = fine_end - first + 1 + (last - fine_end) / kCoarse;
    return static_cast<std::size_t>(count);
  }
};

constexpr int decade_of(int index) {
  return index >= 0 ? index / kPerDecade : -((kPerDecade - 1 - index) / kPerDecade);
}

/// Returns the double nearest to the decimal text, because one division by an exact power of ten rounds once.
constexpr double bound_at(int index) {
  const int decade = decade_of(index);
  double bound = kMantissas[index - decade * kPerDecade];
  double power = 1;
  for (int i = decade; i < 3; ++i) power *= 10;
  bound /= power;
  for (int i = 3; i < decade; ++i) bound *= 10;
  return bound;
}

template <Range range>
constexpr std::array<double, range.size()> bounds() {
  std::array<double, range.size()> all{};
  int index = range.first;
  for (double& bound : all) {
    bound = bound_at(index);
    index += index < range.fine_end ? 1 : kCoarse;
  }
  return all;
}

constexpr auto kSteps = bounds<Range{-83, 70, 90}>();
constexpr auto kRequests = bounds<Range{-76, 70, 90}>();
constexpr auto kFirstTokens = bounds<Range{-60, 55, 70}>();
constexpr auto kInterTokens = bounds<Range{-83, 0, 25}>();
static_assert(kSteps.front() == 0.0004786 && kSteps.back() == 3981);
static_assert(kRequests.front() == 0.000912 && kInterTokens.back() == 10);
static_assert(kFirstTokens[60] == 1 && kFirstTokens[61] == 1.096);

}  // namespace

std::string bound_text(double bound) {
  std::array<char, 32> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), bound, std::chars_format::fixed);
  std::string text(digits.data(), end);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

constinit const Bounds kStepBounds = kSteps;
constinit const Bounds kRequestBounds = kRequests;
constinit const Bounds kFirstTokenBounds = kFirstTokens;
constinit const Bounds kInterTokenBounds = kInterTokens;

}  // namespace gpumeter::jobs
