#include "collectors/simulated/process_option.hpp"

#include <cmath>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::simulated {
namespace {

constexpr std::string_view kForm =
    R"(want "GPU=WHO[,busy=RATIO][,memory=BYTES]", such as "0=/run/pids,busy=0.5,memory=2GiB")";
constexpr std::pair<std::string_view, double> kUnits[] = {
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"", 1}};

std::optional<Error> read_device(std::string_view text, int device_count, ProcessOption& option) {
  if (text == "*") return std::nullopt;
  option.device = parse_number<int>(text);
  if (option.device && *option.device >= 0 && *option.device < device_count) return std::nullopt;
  return Error("no device " + quoted(text) + "; want * or a number below " + std::to_string(device_count));
}

std::optional<Error> read_who(std::string_view text, ProcessOption& option) {
  if (text.starts_with('/')) {
    option.file = text;
    return std::nullopt;
  }
  option.pid = parse_number<int>(text).value_or(0);
  if (option.pid > 0) return std::nullopt;
  return Error(quoted(text) + " is neither a pid nor an absolute path");
}

std::optional<Error> read_busy(std::string_view text, ProcessOption& option) {
  option.busy = parse_number<double>(text);
  if (option.busy && *option.busy >= 0 && *option.busy <= 1) return std::nullopt;
  return Error("busy must be a number from 0 to 1, not " + quoted(text));
}

std::optional<Error> read_memory(std::string_view text, ProcessOption& option) {
  constexpr double kMost = 0x1p50;  // a petabyte; doubles count bytes exactly up to there
  for (const auto& [unit, bytes] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number<double>(text.substr(0, text.size() - unit.size()));
    if (!number || !(*number >= 0) || *number * bytes > kMost) break;
    option.memory_bytes = std::floor(*number * bytes);
    return std::nullopt;
  }
  return Error("memory must be bytes, or a number with KiB, MiB or GiB, not " + quoted(text));
}

std::optional<Error> read_trait(std::string_view text, ProcessOption& option) {
  const std::string_view name = take_until(text, '=');
  if (name == "busy" && !option.busy) return read_busy(text, option);
  if (name == "memory" && !option.memory_bytes) return read_memory(text, option);
  return Error(std::string(kForm));
}

std::optional<Error> read_option(std::string_view text, int device_count, ProcessOption& option) {
  std::string_view rest = text;
  std::string_view subject = take_until(rest, ',');
  const bool ends_with_comma = text.ends_with(',');
  const std::string_view device = take_until(subject, '=');
  if (device.empty() || subject.empty() || ends_with_comma) return Error(std::string(kForm));
  if (auto error = read_device(device, device_count, option)) return error;
  if (auto error = read_who(subject, option)) return error;
  while (!rest.empty()) {
    if (auto error = read_trait(take_until(rest, ','), option)) return error;
  }
  return std::nullopt;
}

}  // namespace

Result<ProcessOption> parse_process_option(std::string_view text, int device_count) {
  ProcessOption option;
  if (const auto error = read_option(text, device_count, option)) return error->with(quoted(text));
  return option;
}

}  // namespace gpumeter::simulated
