// A page of a user in the folder of pages: whatever it says, it speaks for its author, and no series is
// twice.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "collectors/pages/page.hpp"
#include "collectors/sources/page/families.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

bool has_author(const gpumeter::Labels& labels) {
  for (const auto& [name, value] : labels.pairs()) {
    if (name == "author") return value == "alice";
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  std::optional<BadLine> wrong;
  PageText read = read_page(fuzz::text_of(data, size), 2000, wrong);
  if (wrong) return 0;
  const pages::Page page = pages::page_of(std::move(read), {4711, "alice", false}, {{"0", "GPU-a"}}, wrong);
  if (wrong) return 0;
  std::set<std::tuple<std::size_t, const void*, SeriesPart>> seen;
  for (const pages::Page::Series& series : page.series) {
    fuzz::expect(has_author(series.labels));
    fuzz::expect(seen.emplace(series.family, series.labels.id(), series.part).second);
  }
  for (const pages::Page::Family& family : page.families) {
    fuzz::expect(is_metric_name(family.name) && !family.name.starts_with("gpu_"));
  }
  return 0;
}
