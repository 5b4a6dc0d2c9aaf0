#pragma once

#include <string>
#include <variant>

#include "collectors/import/mapping.hpp"

namespace gpumeter::import {

struct Format;

struct Options {
  const Format* format = nullptr;
  std::string file;  ///< "-": the standard input
  std::string socket;
  std::string host;  ///< empty: this machine's
  Mapping mapping;
  bool dry_run = false;
};

/// The program ends with this code after it has printed the text.
struct Exit {
  int code;
  std::string text;
};

std::variant<Options, Exit> parse_options(int argc, const char* const* argv);

}  // namespace gpumeter::import
