#include "base/json/scalars.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace gpumeter {

std::string json_quoted(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"+Inf\"" : "\"-Inf\"";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

void append_json_number(std::string& out, double value, int digits) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
  out.append(text, end);
}

}  // namespace gpumeter
