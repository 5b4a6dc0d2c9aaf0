#include "collectors/builtin.hpp"

#include "collectors/amd/collector.hpp"
#include "collectors/nvidia/collector.hpp"
#include "collectors/simulated/collector.hpp"
#include "collectors/simulated/options.hpp"

namespace gpumeter {
namespace {

constexpr CollectorEntry kBuiltin[] = {nvidia::kNvidia, amd::kAmd, simulated::kSimulated};

}  // namespace

std::span<const CollectorEntry> builtin_collectors() noexcept { return kBuiltin; }

unsigned most_simulated_devices() noexcept { return simulated::kMostDevices; }

}  // namespace gpumeter
