#pragma once

#include "programs/top/layout/line.hpp"
#include "programs/top/pages/view.hpp"

namespace gpumeter::top {

/// The lines above each page: host, version, GPUs by state, power, time; model and driver; what is wrong with
/// the machine or with the connection to its daemon. Pure.
Lines header_lines(const Snapshot& snapshot, const Frame& frame);

/// The last line: the keys of this page.
Line footer_line(const View& view, const Frame& frame);

/// The page of keys.
Lines help_lines(const Frame& frame);

}  // namespace gpumeter::top
