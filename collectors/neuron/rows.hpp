#pragma once

#include <span>

#include "collectors/api/collector.hpp"
#include "collectors/tree/device.hpp"

namespace gpumeter::neuron {

/// A Trainium or Inferentia device, with its cores as slices.
const tree::Kind& neuron_kind() noexcept;

std::span<const RowDoc> neuron_row_docs();

}  // namespace gpumeter::neuron
