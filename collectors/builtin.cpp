#include "collectors/builtin.hpp"

#include "collectors/amd/collector.hpp"
#include "collectors/drm/collector.hpp"
#include "collectors/gaudi/collector.hpp"
#include "collectors/intel/collector.hpp"
#include "collectors/neuron/collector.hpp"
#include "collectors/nvidia/collector.hpp"
#include "collectors/simulated/collector.hpp"

namespace gpumeter {
namespace {

constexpr CollectorEntry kBuiltin[] = {nvidia::kNvidia,   amd::kAmd,       simulated::kSimulated,
                                       drm_devices::kDrm, neuron::kNeuron, gaudi::kGaudi,
                                       intel::kIntel};

}  // namespace

std::span<const CollectorEntry> builtin_collectors() noexcept { return kBuiltin; }

}  // namespace gpumeter
