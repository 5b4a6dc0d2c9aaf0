#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/program.hpp"

/// The command line of a program, by a table of its flags: `--name value`, `--name=value`, and for flags that
/// are on or off `--name` and `--no-name`.
namespace gpumeter {

/// One flag: a row of the table, and of --help.
struct Flag {
  std::string name;                     ///< "--once"
  std::string value;                    ///< the name of its value in --help; empty: the flag is on or off
  std::string help;                     ///< one sentence
  std::string_view group;               ///< the heading in --help
  std::vector<std::string> words = {};  ///< the allowed values; empty: any
  unsigned most = 0;                    ///< above 0: the value is a whole number from 1 to this
  std::string fallback = {};            ///< the value if none is given; empty: a value is required
  bool has_negation = false;            ///< also "--no-collector.amd"
};

/// A wrong command line. The messages of a program with commands ("gpumeter profile") begin with its first
/// word.
Exit usage_error(const std::string& sentence, std::string_view program = "gpumeter");

/// A parsed command line. The error messages have the form of those for keys of the configuration.
class CommandLine {
 public:
  CommandLine(std::vector<Flag> flags, std::span<const char* const> arguments);

  /// Describes the first flag that is unknown or has a wrong value, or none.
  const std::optional<std::string>& problem() const noexcept { return problem_; }
  /// The arguments that are no flags and no values of flags.
  const std::vector<std::string>& words() const noexcept { return words_; }

  bool is_given(std::string_view flag) const { return !values(flag).empty(); }
  /// True if a flag without a value is given, and is not switched off by a later argument.
  bool is_on(std::string_view flag) const { return value(flag) == "true"; }
  /// All values in their order. A flag that is on or off has "true" and "false".
  std::vector<std::string> values(std::string_view flag) const;
  /// The last value, so that a unit's drop-in can override the unit; `fallback` if the flag is absent.
  std::string value(std::string_view flag, std::string_view fallback = {}) const;

 private:
  struct Given {
    std::string flag;
    std::string value;
  };

  void take_flag(std::string_view argument, std::span<const char* const>& rest);
  std::string unknown(std::string_view name) const;

  const std::vector<Flag> flags_;
  std::vector<Given> given_;
  std::vector<std::string> words_;
  std::optional<std::string> problem_;
};

/// The rows of --help: the flags by their groups, with the headings.
std::string help_of(std::span<const Flag> flags);

/// What a program without words is asked for instead of its work: --help, which begins with `purpose`, or
/// --version, if its table has them; or what is wrong with its command line.
std::optional<Exit> early_exit(const CommandLine& line, std::string_view program, std::string_view purpose,
                               std::span<const Flag> flags);
/// One row of --help in the same columns.
std::string help_row(std::string_view left, std::string_view right);

}  // namespace gpumeter
