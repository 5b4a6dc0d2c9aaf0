#include "programs/top/layout/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"

namespace gpumeter::top {
namespace {

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// Numbers of an hour and more: seconds no longer matter.
std::string long_age_text(long minutes) {
  const long hours = minutes / 60;
  if (hours < 24) return print("%ldh%02ldm", hours, minutes % 60);
  return print("%ldd%ldh", hours / 24, hours % 24);
}

}  // namespace

std::string number_text(Number value, int decimals, double unit) {
  if (!value) return std::string(kAbsent);
  const double shown = *value / unit;
  // Avoids "-0".
  return print("%.*f", decimals, std::abs(shown) < 0.5 * std::pow(10, -decimals) ? 0.0 : shown);
}

std::string pair_text(Number value, Number of, int decimals, double unit) {
  if (!value && !of) return std::string(kAbsent);
  return number_text(value, decimals, unit) + "/" + number_text(of, decimals, unit);
}

std::string percent_text(Number ratio) {
  return ratio ? number_text(*ratio * 100) + "%" : std::string(kAbsent);
}

std::string short_text(Number value) {
  if (!value) return std::string(kAbsent);
  const double size = std::abs(*value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return print("%.2e", *value);
  return number_text(value, size < 1e-1 ? 4 : size < 10 ? 2 : size < 100 ? 1 : 0);
}

std::string age_text(Number seconds) {
  if (!seconds) return std::string(kAbsent);
  const long whole = std::lround(std::clamp(*seconds, 0.0, 1e12));
  if (whole < 60) return print("%lds", whole);
  if (whole < 3600) return print("%ldm%02lds", whole / 60, whole % 60);
  return long_age_text(whole / 60);
}

std::string count_text(Number value) {
  constexpr std::array kUnits = {"", "k", "M", "G", "T", "P"};
  if (!value) return std::string(kAbsent);
  double shown = *value;
  std::size_t unit = 0;
  for (double limit = 99999.5; unit + 1 < kUnits.size() && shown >= limit; limit = 999.5, ++unit)
    shown /= 1000;
  return number_text(shown, unit == 0 || shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2) + kUnits[unit];
}

std::string ranges_text(const std::vector<std::string>& numbers) {
  std::string text;
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t last = at;
    const auto value = [&](std::size_t i) { return parse_number<long>(numbers[i]).value_or(-1); };
    while (last + 1 < numbers.size() && value(last + 1) == value(last) + 1) ++last;
    text += (text.empty() ? "" : ",") + numbers[at];
    if (last > at) text += (last > at + 1 ? "-" : ",") + numbers[last];
    at = last + 1;
  }
  return text.empty() ? std::string(kAbsent) : text;
}

std::string bar(double ratio, int width, Charset charset) {
  constexpr std::array kEighths = {"", "\u258F", "\u258E", "\u258D", "\u258C", "\u258B", "\u258A", "\u2589"};
  const int steps = charset == Charset::ascii ? 1 : 8;
  const int filled = static_cast<int>(std::lround(std::clamp(ratio, 0.0, 1.0) * width * steps));
  std::string text;
  for (int i = 0; i < filled / steps; ++i) text += charset == Charset::ascii ? "|" : "\u2588";
  if (filled % steps > 0) text += kEighths[static_cast<std::size_t>(filled % steps)];
  return padded(text, width, charset);
}

}  // namespace gpumeter::top
