#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json/scalars.hpp"

namespace gpumeter {

/// Writes the objects and lists of an answer, with their commas. Numbers that are not finite are null.
class JsonWriter {
 public:
  static constexpr int kDigits = 6;
  static constexpr int kTimeDigits = 13;  ///< milliseconds of a Unix time

  JsonWriter& open(char bracket) { return raw({&bracket, 1}); }
  JsonWriter& close(char bracket) {
    out_ += bracket;
    return *this;
  }
  /// The end of a list that has an element a line.
  JsonWriter& close_lines(char bracket) {
    out_ += '\n';
    return close(bracket);
  }
  JsonWriter& key(std::string_view name) {
    raw(json_quoted(name));
    out_ += ':';
    return *this;
  }
  /// What follows begins on the next line.
  JsonWriter& line(std::string_view indent = {}) {
    raw("\n");
    out_ += indent;
    return *this;
  }
  JsonWriter& raw(std::string_view json) {
    constexpr std::string_view kNoComma = "[{: \n";
    if (!out_.empty() && kNoComma.find(out_.back()) == std::string_view::npos) out_ += ',';
    out_ += json;
    return *this;
  }
  JsonWriter& text(std::string_view value) { return raw(json_quoted(value)); }
  JsonWriter& number(double value, int digits = kDigits) {
    raw({});
    append_json_number(out_, value, digits);
    return *this;
  }

  // Members of an object.
  JsonWriter& text(std::string_view name, std::string_view value) { return key(name).text(value); }
  JsonWriter& flag(std::string_view name, bool value) { return key(name).raw(value ? "true" : "false"); }
  JsonWriter& number(std::string_view name, double value, int digits = kDigits) {
    return key(name).number(value, digits);
  }
  JsonWriter& number(std::string_view name, std::optional<double> value, int digits) {
    return value ? number(name, *value, digits) : key(name).raw("null");
  }
  /// All digits; a number that is not finite is a string.
  JsonWriter& exact(std::string_view name, double value) { return key(name).raw(json_number(value)); }

  /// A list, with the elements that `write` writes.
  template <class Items, class Write>
  JsonWriter& list(std::string_view name, const Items& items, Write write) {
    key(name).open('[');
    std::ranges::for_each(items, write);
    return close(']');
  }

  std::string take() { return std::move(out_) + "\n"; }

 private:
  std::string out_;
};

}  // namespace gpumeter
