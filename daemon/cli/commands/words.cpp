#include "daemon/cli/commands/words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/options.hpp"
#include "base/text.hpp"

namespace gpumeter {

Exit usage_error(const std::string& sentence) {
  return {2, "gpumeter: " + sentence + "\nTry 'gpumeter --help'.\n"};
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    return "must be " + options::enumerate(words, "or") + ", not " +
           gpumeter::quoted(options::printable(text));
  };
  return {check, ""};
}

CLI::Validator from_one_to(unsigned most) {
  const auto check = [most](const std::string& text) {
    const unsigned count = parse_number<unsigned>(text).value_or(0);
    if (count >= 1 && count <= most) return std::string();
    return "must be a whole number from 1 to " + std::to_string(most) + ", not " +
           gpumeter::quoted(options::printable(text));
  };
  return {check, ""};
}

}  // namespace gpumeter
