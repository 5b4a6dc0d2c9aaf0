#pragma once

#include <string>
#include <variant>

#include "programs/held/pass.hpp"

namespace gpumeter::held {

/// The program ends with this text, on stdout if the code is 0.
struct Exit {
  int code;  ///< 0, or 2 for a wrong command line
  std::string text;
};

/// Reads the command line. getopt(3) keeps state, so call it once a process, or set optind to 0 before.
std::variant<Settings, Exit> parse_options(int argc, char* const* argv);

}  // namespace gpumeter::held
