#pragma once

#include <cstddef>
#include <span>
#include <string>

/// Upper bounds of the histograms' buckets, in seconds; the last one, +Inf, is not among them. Constant
/// tables, any thread.
///
/// `histogram_quantile` interpolates linearly inside a bucket, so its error is bounded by the ratio of the
/// bucket's bounds, and training steps come close to the worst case: all of them take the same time and lie
/// in one bucket. At 25 bounds a decade (ratio 1.0965) a quantile of any distribution, at most the 99th
/// percentile, is at most 9.6 % off; at 20 a decade it would be 12 %. Smooth distributions are drawn within
/// about 1 %.
///
/// Each series of a family has all of its bounds from its first observation on. Sets that adapt to what is
/// seen would be smaller, but a bucket that appears later lacks its first increase in `rate()`, so quantiles
/// would be wrong for a window, and machines with different sets could not be added up by `le`.
namespace gpumeter::jobs {

using Bounds = std::span<const double>;

/// As the label `le` has it, in OpenMetrics' form: "0.001096", "10.0".
std::string bound_text(double bound);

/// 0.5 ms to 10 minutes, coarser to 66 minutes: a small model's step, and a step that generates its own data.
extern const Bounds kStepBounds;
/// 1 ms to 10 minutes, coarser to 66 minutes.
extern const Bounds kRequestBounds;
/// 4 ms to 158 s, coarser to 10 minutes: a long prompt, or one that waits in a queue.
extern const Bounds kFirstTokenBounds;
/// 0.5 ms to 1 s, coarser to 10 s: a stall between two tokens.
extern const Bounds kInterTokenBounds;

}  // namespace gpumeter::jobs
