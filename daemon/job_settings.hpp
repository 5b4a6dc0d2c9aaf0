#pragma once

#include <vector>

#include "collectors/jobs/intake/settings.hpp"
#include "config/config.hpp"
#include "systemd/listen_fds.hpp"

/// Converts the configuration and systemd's sockets to the types of collectors/jobs.
namespace gpumeter {

jobs::Settings job_settings_of(const config::Config& config);

/// Takes ownership of the descriptors: a socket that is not used is closed.
std::vector<jobs::PassedSocket> job_sockets_of(const std::vector<systemd::PassedSocket>& passed);

}  // namespace gpumeter
