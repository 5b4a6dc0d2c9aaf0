#pragma once

#include <cstddef>
#include <span>
#include <string>

/// Upper bounds of the histograms' buckets, in seconds. The last bound, +Inf, is not part of these constant
/// tables. Any thread.
///
/// `histogram_quantile` interpolates linearly inside a bucket, so its error is bounded by the ratio of the
/// bucket's bounds. Training steps come close to this worst case: they all take the same time and fall into
/// one bucket. At 25 bounds a decade (ratio 1.0965), any quantile up to the 99th percentile is at most 9.6 %
/// off, whatever the distribution. At 20 bounds a decade the error would be 12 %. Quantiles of smooth
/// distributions are within about 1 %.
///
/// Each series of a family has all of its bounds from its first observation on. Adaptive sets would be
/// smaller, but a bucket that appears later lacks its first increase in `rate()`. Quantiles would then be
/// wrong for a window, and machines with different sets could not be added up by `le`.
namespace gpumeter::jobs {

using Bounds = std::span<const double>;

/// The value of the label `le`, in OpenMetrics' form: "0.001096", "10.0".
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
