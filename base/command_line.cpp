#include "base/command_line.hpp"

#include <algorithm>
#include <utility>

#include "base/build_info.hpp"
#include "base/options.hpp"
#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kNo = "--no-";
constexpr std::string_view kHelp = "--help";

std::string negation_of(const Flag& flag) { return std::string(kNo) + flag.name.substr(2); }

/// Returns what is wrong with a value; empty: nothing.
std::string wrong_value(const Flag& flag, const std::string& value) {
  std::string must;
  if (!flag.words.empty() && std::ranges::find(flag.words, value) == flag.words.end())
    must = options::enumerate(flag.words, "or");
  const unsigned number = parse_number<unsigned>(value).value_or(0);
  if (flag.most > 0 && (number < 1 || number > flag.most))
    must = "a whole number from 1 to " + std::to_string(flag.most);
  if (flag.value.empty() && value != "true" && value != "false") must = "true or false";
  if (must.empty()) return {};
  return flag.name + ": must be " + must + ", not " + gpumeter::quoted(options::printable(value));
}

/// Takes the next argument as the value, unless it is a flag.
std::optional<std::string> next_value(std::span<const char* const>& rest) {
  if (rest.empty() || std::string_view(rest.front()).starts_with('-')) return std::nullopt;
  const std::string value = rest.front();
  rest = rest.subspan(1);
  return value;
}

}  // namespace

CommandLine::CommandLine(std::vector<Flag> flags, std::span<const char* const> arguments)
    : flags_(std::move(flags)) {
  while (!arguments.empty()) {
    const std::string_view argument = arguments.front();
    arguments = arguments.subspan(1);
    if (argument.starts_with('-')) {
      take_flag(argument, arguments);
    } else {
      words_.emplace_back(argument);
    }
  }
}

void CommandLine::take_flag(std::string_view argument, std::span<const char* const>& rest) {
  const std::size_t equals = argument.find('=');
  const std::string name(argument == "-h" ? kHelp : argument.substr(0, equals));
  const auto flag = std::ranges::find_if(flags_, [&name](const Flag& each) {
    return each.name == name || (each.has_negation && negation_of(each) == name);
  });
  std::optional<std::string> value;
  if (equals != std::string_view::npos) value = argument.substr(equals + 1);
  std::string wrong;
  if (flag == flags_.end()) {
    wrong = unknown(name);
  } else {
    if (!value && flag->value.empty()) value = "true";
    if (!value) value = next_value(rest);
    if (!value && !flag->fallback.empty()) value = flag->fallback;
    wrong = value ? wrong_value(*flag, *value) : name + " requires a value";
    if (flag->name != name) value = value == "true" ? "false" : "true";
  }
  if (wrong.empty()) {
    given_.push_back({flag->name, *value});
  } else if (!problem_) {
    problem_ = wrong;
  }
}

std::string CommandLine::unknown(std::string_view name) const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) {
    names.push_back(flag.name);
    if (flag.has_negation) names.push_back(negation_of(flag));
  }
  const std::string meant = options::nearest(name, names);
  return "unknown flag " + options::printable(name) + (meant.empty() ? "" : "; did you mean " + meant + "?");
}

std::vector<std::string> CommandLine::values(std::string_view flag) const {
  std::vector<std::string> values;
  for (const Given& each : given_) {
    if (each.flag == flag) values.push_back(each.value);
  }
  return values;
}

std::string CommandLine::value(std::string_view flag, std::string_view fallback) const {
  const std::vector<std::string> all = values(flag);
  return all.empty() ? std::string(fallback) : all.back();
}

std::string help_row(std::string_view left, std::string_view right) {
  constexpr std::size_t kColumn = 36;
  constexpr std::size_t kWidth = 84;  // of the right column
  std::string row = "  " + std::string(left);
  const bool is_long = row.size() >= kColumn;
  row.append(is_long ? "\n" : "").append(is_long ? kColumn : kColumn - row.size(), ' ');
  for (std::size_t end = 0; right.size() > kWidth; right.remove_prefix(end + 1)) {
    end = right.rfind(' ', kWidth);
    if (end == std::string_view::npos) break;
    row.append(right.substr(0, end)).append("\n").append(kColumn, ' ');
  }
  return row.append(right).append("\n");
}

std::string help_of(std::span<const Flag> flags) {
  std::string text;
  std::string_view group;
  for (const Flag& flag : flags) {
    if (std::exchange(group, flag.group) != flag.group) text.append("\n").append(flag.group).append(":\n");
    const std::string names = flag.name == kHelp ? "-h,--help" : flag.name;
    text += help_row(names + (flag.has_negation ? "," + negation_of(flag) : "") +
                         (flag.value.empty() ? "" : " " + flag.value),
                     flag.help);
  }
  return text;
}

Exit usage_error(const std::string& sentence, std::string_view program) {
  const std::string name(program.substr(0, program.find(' ')));
  return {2, name + ": " + sentence + "\nTry '" + std::string(program) + " --help'.\n"};
}

std::optional<Exit> early_exit(const CommandLine& line, std::string_view program, std::string_view purpose,
                               std::span<const Flag> flags) {
  if (line.is_on(kHelp)) {
    return Exit{0,
                std::string(purpose) + "\nUsage: " + std::string(program) + " [OPTIONS]\n" + help_of(flags)};
  }
  if (line.problem()) return usage_error(*line.problem(), program);
  if (line.is_on("--version")) return Exit{0, build::version_text(program)};
  if (line.words().empty()) return std::nullopt;
  return usage_error("unexpected argument " + gpumeter::quoted(options::printable(line.words().front())),
                     program);
}

}  // namespace gpumeter
