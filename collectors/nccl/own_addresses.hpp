#pragma once

#include <set>
#include <string>

namespace gpumeter::nccl {

/// The machine's own addresses, as NCCL prints them (inet_ntop). Any thread.
std::set<std::string> own_addresses();

}  // namespace gpumeter::nccl
