#pragma once

#include <chrono>

#include "collectors/api/result.hpp"
#include "exporter/listen_socket.hpp"

namespace gpumeter {

/// Asks one of our own listeners for /-/healthy, over a connection of its own; an Error where it does not
/// answer 200 in time. The daemon does so before it tells systemd's watchdog that it is well. Blocks for
/// `timeout` at the most.
Result<Done> probe(const Endpoint& endpoint, std::chrono::milliseconds timeout);

}  // namespace gpumeter
