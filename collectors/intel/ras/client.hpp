#pragma once

#include <string_view>

#include "collectors/intel/ras/counts.hpp"

namespace gpumeter::intel::ras {

/// Asks the kernel for the counts of a card. `unsupported`: the kernel has no family drm-ras, or no node of
/// the card. `denied`: the family requires CAP_NET_ADMIN. Waits for at most a second; lane thread.
Counts read_counts(std::string_view pci_address) noexcept;

}  // namespace gpumeter::intel::ras
