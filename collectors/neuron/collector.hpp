#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "collectors/api/collector.hpp"

namespace gpumeter::neuron {

/// The numbers in a `connected_devices` file: "1, 3, 4, 12". Other texts between commas are left out.
std::vector<int> device_numbers(std::string_view list);

std::span<const RowDoc> neuron_row_docs();
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
