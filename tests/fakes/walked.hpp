#pragma once

#include <string>

#include "exporter/store/store.hpp"

namespace gpumeter {

/// `a="1",b="2"`, without escapes.
inline std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels.pairs()) {
    text.append(text.empty() ? "" : ",").append(name).append("=\"").append(value).append("\"");
  }
  return text;
}

/// A view for tests: each series as a line `name{labels} value`. Parts of a histogram have `/bucket`, `/sum`
/// or `/count` after the name.
inline std::string walked(const Store& store) {
  constexpr const char* kParts[] = {"", "/bucket", "/sum", "/count"};
  std::string lines;
  store.walk([&](const Family& family) {
    family.for_each([&](const Series& series) {
      lines.append(family.descriptor().name).append(kParts[static_cast<std::size_t>(series.part())]);
      lines += "{" + text_of(series.labels()) + "} " + std::to_string(series.value());
      lines.erase(lines.find_last_not_of('0') + 1);  // 2.500000 -> 2.5, 2.000000 -> 2.
      if (lines.back() == '.') lines.pop_back();
      lines += "\n";
    });
  });
  return lines;
}

}  // namespace gpumeter
