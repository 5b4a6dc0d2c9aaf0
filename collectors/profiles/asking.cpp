#include "collectors/profiles/asking.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/text.hpp"
#include "collectors/profiles/kineto_wire.hpp"

namespace gpumeter::profiles {
namespace {

template <class Number>
Result<Number> number_in(std::string_view text, Number most) {
  const auto number = parse_number<Number>(text);
  if (number && *number >= 1 && *number <= most) return *number;
  return Error("expected a whole number from 1 to " + std::to_string(most));
}

Result<Done> take_line(std::string_view word, std::string_view value, Asked& asked) {
  if (word == "run" && !value.empty()) {
    asked.run = value;
    return Done{};
  }
  if (word == "folder" && !value.empty()) {
    asked.folder = value;
    return Done{};
  }
  if (word == "pid") {
    const auto pid = number_in<int>(value, 1 << 22);  // PID_MAX_LIMIT
    if (!pid) return pid.error().with("pid");
    asked.pid = *pid;
    return Done{};
  }
  if (word == "steps") {
    const auto steps = number_in<unsigned>(value, kMostSteps);
    if (!steps) return steps.error().with("steps");
    asked.extent.steps = *steps;
    return Done{};
  }
  if (word != "milliseconds") return Error("unknown word in the request");
  const auto time = number_in<std::int64_t>(value, kLongestTrace / std::chrono::milliseconds(1));
  if (!time) return time.error().with("milliseconds");
  asked.extent.duration = std::chrono::milliseconds(*time);
  return Done{};
}

constexpr std::string_view kPrefix = "gpumeter_";
constexpr std::string_view kSuffix = ".json";

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

}  // namespace

std::string text_of(const Asked& asked) {
  std::string text = asked.pid ? "pid " + std::to_string(*asked.pid) : "run " + asked.run;
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(asked.extent.duration).count();
  text += asked.extent.steps ? "\nsteps " + std::to_string(*asked.extent.steps)
                             : "\nmilliseconds " + std::to_string(time);
  if (!asked.folder.empty()) text += "\nfolder " + asked.folder;
  return text + "\n\n";
}

Result<Asked> parse_asked(std::string_view text) {
  Asked asked;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.empty()) {
      if (asked.run.empty() == !asked.pid) return Error("name either a run or a process");
      return asked;
    }
    const std::string_view word = take_until(line, ' ');
    if (const Result<Done> taken = take_line(word, line, asked); !taken) return taken.error();
  }
  return Error("the request has no end");
}

Result<std::string> path_in(std::string_view folder, std::string_view run) {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return Error("no random number");
  constexpr std::size_t kMostOfName = 40;
  std::string name(run.substr(0, kMostOfName));
  std::ranges::replace_if(
      name, [&](char c) { return !is_plain(c); }, '-');
  std::array<char, 16> digits{};
  const char* const end = std::to_chars(digits.begin(), digits.end(), random, 16).ptr;
  const std::string_view slash = folder.ends_with('/') ? "" : "/";
  std::string path =
      std::string(folder).append(slash) + std::string(kPrefix) + (name.empty() ? "process" : name) + "_" +
      std::string(digits.data(), static_cast<std::size_t>(end - digits.data())) + std::string(kSuffix);
  if (const Result<Done> checked = kineto::check_path(path); !checked) return checked.error();
  return path;
}

bool is_trace_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;  // NAME_MAX
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() > kLongest) return false;
  name.remove_suffix(kSuffix.size());
  return std::ranges::all_of(name, [](char c) { return is_plain(c) || c == '_'; });
}

}  // namespace gpumeter::profiles
