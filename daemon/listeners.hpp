#pragma once

#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/listen/socket.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {

/// Returns the sockets of HTTP: those that systemd passed, otherwise the addresses of `web.listen`.
/// `only_passed` (--web.systemd-socket): returns an Error if systemd passed none. The log warns about every
/// configured address that is not served. Blocks for the name service.
Result<std::vector<ListenSocket>> open_listeners(const HttpSettings& web,
                                                 const std::vector<systemd::PassedSocket>& passed,
                                                 bool only_passed, Log& log);

}  // namespace gpumeter
