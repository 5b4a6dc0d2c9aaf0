#include "tests/fakes/nvml/value.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>

#include "tests/fakes/nvml/words.hpp"

namespace gpumeter::fake_nvml {
namespace {

struct Unit {
  std::string_view name;
  Number scale;  ///< to NVML's unit: mW, mJ, bytes, ns, MHz, degrees, percent
};
constexpr Unit kUnits[] = {
    {"W", 1e3L},
    {"mW", 1},
    {"J", 1e3L},
    {"mJ", 1},
    {"B", 1},
    {"KiB", 1024},
    {"MiB", 1048576},
    {"ns", 1},
    {"us", 1e3L},
    {"ms", 1e6L},
    {"s", 1e9L},
    {"MHz", 1},
    {"C", 1},
    {"%", 1},
    {"x", 1},
    {"rpm", 1},
    {"GiB", 1073741824},
    {"TiB", 1099511627776.0L},
};

std::optional<Number> with_unit(const std::string& text) {
  const char* begin = text.c_str();
  char* end = nullptr;
  const bool whole = text.find_first_of(".") == std::string::npos;
  errno = 0;
  Number number = 0;
  if (whole && text.front() != '-') {
    number = static_cast<Number>(std::strtoull(begin, &end, text.rfind("0x", 0) == 0 ? 16 : 10));
  }
  if (end == nullptr || *end == 'e') number = std::strtold(begin, &end);
  if (end == begin || errno != 0) return std::nullopt;
  std::string_view unit(end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty()) return number;
  for (const auto& known : kUnits) {
    if (known.name == unit) return number * known.scale;
  }
  return std::nullopt;
}

std::optional<Number> number_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (const auto word = number_of_word(text)) return static_cast<Number>(*word);
  if (text == "nan") return std::numeric_limits<Number>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<Number>::infinity();
  if (text.size() > 1 && text.front() == 'P') return with_unit(text.substr(1));
  const char first = text.front();
  if ((first < '0' || first > '9') && first != '-' && first != '.') return std::nullopt;
  return with_unit(text);
}

}  // namespace

Value parse_scalar(const std::string& text) {
  const auto number = number_of(text);
  return Value{.number = number.value_or(0), .is_number = number.has_value(), .text = text};
}

bool is_word(std::string_view text) { return number_of_word(text).has_value(); }

}  // namespace gpumeter::fake_nvml
