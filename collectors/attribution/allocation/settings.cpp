#include "collectors/attribution/allocation/settings.hpp"

namespace gpumeter::allocation {
namespace {

using options::check_optional_path;
using options::check_percent;
using options::checked;
using options::Option;
using options::option;
using options::Reload;

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::idle_percent>("idle_percent", Reload::restart, "Busy share in percent below which an allocated GPU counts as idle (`gpu_allocated_idle_seconds_total`).", checked<check_percent>),
    option<&Settings::slurm>("slurm", Reload::restart, "Folder to which Slurm's prolog writes the jobs of this machine (docs/slurm.md); `\"\"`: none.", checked<check_optional_path>),
    option<&Settings::slurm_gpus>("slurm_gpus", Reload::restart, "File with slurmd's list of GPUs: the output of `slurmd -G`, or gres.conf. Required if slurmd does not know the GPUs' uuids and its order differs from that of the PCI addresses. Empty: none.", checked<check_optional_path>),
    option<&Settings::manual>("manual", Reload::restart, "Folder of the allocations that `gpumeter allocate` made; `\"\"`: none.", checked<check_optional_path>),
    option<&Settings::held>("held", Reload::restart, "Folder in which `gpumeter-held` records the GPUs that the control groups of Slurm jobs permit (docs/slurm.md); `\"\"`: none.", checked<check_optional_path>),
};
// clang-format on

}  // namespace

constinit const options::Section kSection = options::section("allocations", kOptions);

}  // namespace gpumeter::allocation
