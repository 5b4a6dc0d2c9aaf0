#pragma once

#include <vector>

#include "collectors/jobs/intake/settings.hpp"
#include "config/config.hpp"
#include "systemd/listen_fds.hpp"

/// Translates the configuration and systemd's sockets into what collectors/jobs takes.
namespace gpumeter {

jobs::Settings job_settings_of(const config::Config& config);

/// Takes over the descriptors: a socket that nobody uses is closed.
std::vector<jobs::PassedSocket> job_sockets_of(const std::vector<systemd::PassedSocket>& passed);

}  // namespace gpumeter
