#pragma once

#include <vector>

#include "programs/top/layout/line.hpp"
#include "programs/top/model/snapshot.hpp"

namespace gpumeter::top {

/// All that is known of one GPU: why it is in its state and what to do, its values, who uses it. Pure.
Lines gpu_detail(const Snapshot& snapshot, const Gpu& gpu, int width, Charset charset);

/// A finding in a line or more: severity, sentence, time, action, alert.
Lines finding_lines(const Finding& finding, int width, Charset charset);

}  // namespace gpumeter::top
