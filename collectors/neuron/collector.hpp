#pragma once

#include <memory>

#include "collectors/api/collector.hpp"
#include "collectors/neuron/rows.hpp"

namespace gpumeter::neuron {

Result<std::unique_ptr<Collector>> open_neuron(const CollectorContext& context);

/// AWS Trainium and Inferentia, from the sysfs tree of the Neuron driver; no library. The driver is read in
/// parallel, because its nodes are counters in its memory.
inline constexpr CollectorEntry kNeuron = {
    .name = "neuron",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = {},
    .metrics = neuron_row_docs,
    .check = [](const CollectorContext&) -> std::optional<OptionProblem> { return std::nullopt; },
    .open = open_neuron,
};

}  // namespace gpumeter::neuron
