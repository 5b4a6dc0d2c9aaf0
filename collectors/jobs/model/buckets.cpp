#include "collectors/jobs/model/buckets.hpp"

#include <iterator>

namespace gpumeter::jobs {
namespace {

/// 10^(i/25) in thousandths. Decimal texts of four digits keep the page short; rounding adds 0.05 % at the
/// most.
constexpr int kMantissas[] = {1000, 1096, 1202, 1318, 1445, 1585, 1738, 1905, 2089, 2291, 2512, 2754, 3020,
                              3311, 3631, 3981, 4365, 4786, 5248, 5754, 6310, 6918, 7586, 8318, 9120};
constexpr int kPerDecade = std::size(kMantissas);
constexpr int kCoarse = 5;  ///< a bound in so many, where the set is coarser

/// A set from 10^(first/25) to 10^(last/25) seconds; from `fine_end` on it is coarser.
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

constexpr int power_of_ten(int exponent) { return exponent == 0 ? 1 : 10 * power_of_ten(exponent - 1); }

/// `mantissa` thousandths times 10^decade, with a digit at least on each side of the point.
constexpr void write_digits(Bound& bound, int mantissa, int decade) {
  const auto append = [&](char c) { bound.digits[bound.length++] = c; };
  int rest = mantissa;
  for (int place = decade > 0 ? decade : 0; place >= -1 || rest > 0; --place) {
    const int unit = place <= decade && place >= decade - 3 ? power_of_ten(place - decade + 3) : 0;
    append(static_cast<char>('0' + (unit > 0 ? rest / unit : 0)));
    if (unit > 0) rest %= unit;
    if (place == 0) append('.');
  }
}

/// The double that is nearest to the text, which is why it is one division by an exact power of ten.
constexpr Bound bound_at(int index) {
  const int decade = decade_of(index);
  const int mantissa = kMantissas[index - decade * kPerDecade];
  Bound bound;
  double power = 1;
  for (int i = decade; i < 3; ++i) power *= 10;
  bound.value = mantissa / power;
  for (int i = 3; i < decade; ++i) bound.value *= 10;
  write_digits(bound, mantissa, decade);
  return bound;
}

template <Range range>
constexpr std::array<Bound, range.size()> bounds() {
  std::array<Bound, range.size()> all;
  int index = range.first;
  for (Bound& bound : all) {
    bound = bound_at(index);
    index += index < range.fine_end ? 1 : kCoarse;
  }
  return all;
}

constexpr auto kSteps = bounds<Range{-83, 70, 90}>();
constexpr auto kRequests = bounds<Range{-76, 70, 90}>();
constexpr auto kFirstTokens = bounds<Range{-60, 55, 70}>();
constexpr auto kInterTokens = bounds<Range{-83, 0, 25}>();
static_assert(kSteps.front().text() == "0.0004786" && kSteps.back().text() == "3981.0");
static_assert(kRequests.front().text() == "0.000912" && kInterTokens.back().text() == "10.0");
static_assert(kFirstTokens[60].text() == "1.0" && kFirstTokens[61].text() == "1.096");

}  // namespace

constinit const Bounds kStepBounds = kSteps;
constinit const Bounds kRequestBounds = kRequests;
constinit const Bounds kFirstTokenBounds = kFirstTokens;
constinit const Bounds kInterTokenBounds = kInterTokens;

}  // namespace gpumeter::jobs
