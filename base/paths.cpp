#include "base/paths.hpp"

namespace gpumeter {
namespace {

using options::check_absolute_path;
using options::check_socket_path;
using options::checked;
using options::Option;
using options::option;
using options::Reload;

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Paths::sysfs>("sysfs", Reload::restart, "Mount point of sysfs.", checked<check_absolute_path>),
    option<&Paths::procfs>("procfs", Reload::restart, "Mount point of procfs.", checked<check_absolute_path>),
    option<&Paths::state>("state", Reload::restart, "Folder of the state that survives a restart: the index of each device.", checked<check_absolute_path>),
    option<&Paths::api>("api", Reload::restart, "Unix socket of HTTP for root and the group of the daemon, such as the programs `gpumeter-servers`: the routes of the port, and who uses the GPUs. Empty: none.", checked<check_socket_path>),
};
// clang-format on

}  // namespace

constinit const options::Section kPathSection = options::section("paths", kOptions);

}  // namespace gpumeter
