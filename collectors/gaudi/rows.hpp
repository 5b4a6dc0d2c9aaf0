#pragma once

#include <span>

#include "collectors/api/collector.hpp"
#include "collectors/tree/device.hpp"

namespace gpumeter::gaudi {

const tree::Kind& gaudi_kind() noexcept;

std::span<const RowDoc> gaudi_row_docs();

}  // namespace gpumeter::gaudi
