#pragma once

#include <cstddef>
#include <string>

namespace gpumeter::benchmark {

/// The size of a buffer that no cache of the host's processor holds: a quarter above the largest one that the
/// kernel reports in `sysfs` (/sys), and at least 64 MiB.
std::size_t size_above_caches(const std::string& sysfs);

}  // namespace gpumeter::benchmark
