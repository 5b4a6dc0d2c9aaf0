#include "collectors/sources/host/pressure.hpp"

#include <cstdint>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter {
namespace {

/// The seconds of "... total=MICROSECONDS".
std::optional<double> total_of(std::string_view fields) noexcept {
  constexpr std::string_view kTotal = "total=";
  constexpr double kMicro = 1e-6;
  while (!fields.empty()) {
    const std::string_view field = take_until(fields, ' ');
    if (!field.starts_with(kTotal)) continue;
    const auto microseconds = parse_number<std::uint64_t>(trimmed(field.substr(kTotal.size())));
    if (!microseconds) return std::nullopt;
    return static_cast<double>(*microseconds) * kMicro;
  }
  return std::nullopt;
}

}  // namespace

Pressure parse_pressure(std::string_view text) noexcept {
  Pressure pressure;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view waiting = take_until(line, ' ');
    if (waiting == "some") pressure.some = total_of(line);
    if (waiting == "full") pressure.full = total_of(line);
  }
  return pressure;
}

Pressure read_pressure(const std::string& procfs_root, const std::string& resource) {
  return parse_pressure(sysfs::read_text(procfs_root + "/pressure/" + resource));
}

}  // namespace gpumeter
