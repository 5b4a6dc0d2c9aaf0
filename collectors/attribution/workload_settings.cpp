#include "collectors/attribution/workload_settings.hpp"

namespace gpumeter {
namespace {

using options::Option;
using options::option;
using options::Reload;

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&WorkloadOptions::enabled>("enabled", Reload::restart, "Export `gpu_workload_*`: who uses each device whose driver lists its processes."),
    option<&WorkloadOptions::processes>("processes", Reload::restart, "Export `gpu_process_*`, series for each process. They come and go with the processes."),
};
// clang-format on

}  // namespace

constinit const options::Section kWorkloadSection = options::section("workloads", kOptions);

}  // namespace gpumeter
