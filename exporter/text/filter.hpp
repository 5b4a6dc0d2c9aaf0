#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gpumeter {

/// The collectors that a scrape selects: `collect[]` or `exclude[]`, never both. An empty filter selects all.
/// Series that belong to no collector are on every page.
struct Filter {
  std::vector<std::string> collect;
  std::vector<std::string> exclude;

  bool empty() const noexcept { return collect.empty() && exclude.empty(); }
  bool wants(std::string_view collector) const noexcept {
    const auto in = [&](const auto& names) { return std::ranges::find(names, collector) != names.end(); };
    return collector.empty() || (collect.empty() ? !in(exclude) : in(collect));
  }
};

}  // namespace gpumeter
