#include "exporter/json/scalars.hpp"

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

}  // namespace gpumeter
