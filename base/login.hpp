#pragma once

#include <string>

#include "base/result.hpp"

/// What a client needs for a daemon with a web configuration (`web.config_file`). No password is on a command
/// line, where other users of the machine read it. Blocks; any thread.
namespace gpumeter {

struct Login {
  std::string user;  ///< empty: none
  std::string password;
};

/// Reads "USER:PASSWORD", the first line of a file. Returns an Error if there is no such line, or if the
/// file's permissions let other users read it.
Result<Login> read_login(const std::string& path);

}  // namespace gpumeter
