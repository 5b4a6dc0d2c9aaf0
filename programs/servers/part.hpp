#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectors/api/part.hpp"
#include "collectors/sources/tcp.hpp"
#include "programs/servers/settings.hpp"

namespace gpumeter::servers {

/// A change of what is read.
struct Notice {
  std::string message, server, error;  ///< an empty error: it works again
};
/// What tests replace.
struct Outside {
  std::function<Result<std::string>(const Target&)> fetch;  ///< blocks for 2 s at most
  std::function<void(const Notice&)> say;
  std::function<Result<std::vector<tcp::Listener>>(const std::string& procfs)> listeners = tcp::listeners;
};

/// Reads the metrics pages of the model servers and writes ml_server_*. Rebuilds its series each time, so
/// that a histogram whose bounds change with a new version of the server leaves no bucket behind. A turn
/// waits for each server's answer.
std::shared_ptr<Part> make_part(const PartContext& context, Outside outside);

/// `servers`: null if the configuration names no server and does not look for any.
extern const PartEntry kPart;

}  // namespace gpumeter::servers
