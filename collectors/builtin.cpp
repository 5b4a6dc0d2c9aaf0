#include "collectors/builtin.hpp"

#include "collectors/amd/collector.hpp"
#include "collectors/nvidia/collector.hpp"
#include "collectors/simulated/collector.hpp"

namespace gpumeter {
namespace {

constexpr CollectorEntry kBuiltin[] = {nvidia::kNvidia, amd::kAmd, simulated::kSimulated};

}  // namespace

std::span<const CollectorEntry> builtin_collectors() noexcept { return kBuiltin; }

}  // namespace gpumeter
