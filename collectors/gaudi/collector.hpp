#pragma once

#include <memory>
#include <span>

#include "collectors/api/collector.hpp"

namespace gpumeter::gaudi {

std::span<const RowDoc> gaudi_row_docs();
Result<std::unique_ptr<Collector>> open_gaudi(const CollectorContext& context);

/// Intel Gaudi from the files of the habanalabs driver; no library. Gaudi 3 needs the vendor's own driver,
/// which has the same files.
inline constexpr CollectorEntry kGaudi = {
    .name = "gaudi",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = {},
    .metrics = gaudi_row_docs,
    .check = [](const CollectorContext&) -> std::optional<OptionProblem> { return std::nullopt; },
    .open = open_gaudi,
};

}  // namespace gpumeter::gaudi
