#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/listen/socket.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {

/// The sockets of the HTTP server: those that systemd passed, or those of `web.listen`. Passed sockets are
/// used without the flag, so that gpumeter.socket alone enables and disables them. Their addresses cannot be
/// bound a second time. The Error of a port that is taken names the process that holds it, as far as this
/// user may see it, and what to do. The main thread, before any other thread waits for it: the search reads
/// /proc.
Result<std::vector<ListenSocket>> open_listeners(const HttpSettings& web,
                                                 const std::vector<systemd::PassedSocket>& passed,
                                                 bool only_passed, const std::string& procfs, Log& log);

}  // namespace gpumeter
