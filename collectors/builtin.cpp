#include "collectors/builtin.hpp"

#include "collectors/amd/amd_collector.hpp"
#include "collectors/nvidia/nvidia_collector.hpp"
#include "collectors/simulated/options.hpp"
#include "collectors/simulated/simulated_collector.hpp"

namespace gpumeter {
namespace {

constexpr CollectorEntry kBuiltin[] = {nvidia::kNvidia, amd::kAmd, simulated::kSimulated};

}  // namespace

std::span<const CollectorEntry> builtin_collectors() noexcept { return kBuiltin; }

unsigned most_simulated_devices() noexcept { return simulated::kMostDevices; }

}  // namespace gpumeter
