#pragma once

#include <string>
#include <variant>

#include "base/clock.hpp"
#include "programs/client/http.hpp"
#include "programs/top/pages.hpp"

namespace gpumeter::top {

/// The validated command line.
struct Options {
  client::Address address;
  client::Access access;
  Nanoseconds interval{};
  Sort sort = Sort::state;
  bool once = false;
};

/// An exit before the start. The text goes to stdout if the code is 0 (help, version), otherwise to stderr.
struct Exit {
  int code;
  std::string text;
};

std::variant<Options, Exit> parse_options(int argc, const char* const* argv);

}  // namespace gpumeter::top
