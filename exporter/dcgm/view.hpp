#pragma once

#include <string>

#include "exporter/dcgm/rows.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/format.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter::dcgm {

/// Renders the store's NVIDIA cards under dcgm-exporter's names, labels and units, for tools that read its
/// page by name. Other vendors' cards are left out: such tools take each card for one of NVIDIA's. A card is
/// on the page while its gpu_info is. In OpenMetrics, counters have the type `unknown`, because their names
/// do not end in `_total`. `host` is the machine's name. Any thread.
Rendered render(const Store& store, Version version, Format format, const Filter& filter,
                const std::string& host);

}  // namespace gpumeter::dcgm
