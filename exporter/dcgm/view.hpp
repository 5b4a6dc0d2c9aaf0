#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/format.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter::dcgm {

/// The names and units of dcgm-exporter: those of all versions up to 4.8, or those since 4.9.
enum class Version : std::uint8_t { v4_8, v4_9 };

/// The values of the query parameter `names` that choose dcgm-exporter's names.
inline constexpr EnumNames<Version, 3> kVersionNames = {
    {{Version::v4_8, "dcgm"}, {Version::v4_8, "dcgm-4.8"}, {Version::v4_9, "dcgm-4.9"}}};

/// Renders the store's NVIDIA cards under dcgm-exporter's names, labels and units, for tools that read its
/// page by name. Other vendors' cards are left out: such tools take each card for one of NVIDIA's. A card is
/// on the page while its gpu_info is. In OpenMetrics, counters have the type `unknown`, because their names
/// do not end in `_total`. `host` is the machine's name. Any thread.
Rendered render(const Store& store, Version version, Format format, const Filter& filter,
                const std::string& host);

}  // namespace gpumeter::dcgm
