#pragma once

#include "collectors/api/part.hpp"

namespace gpumeter::nccl {

/// Asks the NCCL of each user's job on this machine about its ranks, if the gate permits: ml_nccl_* and
/// gpumeter_nccl_state. A turn asks one job at most, which may take 15 s.
extern const PartEntry kPart;

}  // namespace gpumeter::nccl
