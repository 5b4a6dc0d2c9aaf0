#pragma once

#include <string>
#include <vector>

#include "daemon/cli/options.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class Validator;
}

/// What the flags and the commands of gpumeter have in common. The error messages have the form of those for
/// keys of the file.
namespace gpumeter {

/// PID_MAX_LIMIT of the kernel, the upper bound of process ids.
inline constexpr unsigned kMostProcesses = 1U << 22U;

Exit usage_error(const std::string& sentence);

/// Accepts the values of a closed set.
CLI::Validator one_of(const std::vector<std::string>& words);
CLI::Validator from_one_to(unsigned most);

}  // namespace gpumeter
