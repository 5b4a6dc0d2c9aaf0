// A page of a user in the folder of pages: whatever it says, it speaks for its author, and no series is
// twice.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "collectors/pages/page.hpp"
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
  std::optional<pages::BadLine> wrong;
  pages::Page page = pages::read_page(fuzz::text_of(data, size), 2000, wrong);
  if (wrong || sign(page, {4711, "alice", false}, {{"0", "GPU-a"}})) return 0;
  for (const pages::Page::Family& family : page.families) {
    fuzz::expect(is_metric_name(family.name) && !family.name.starts_with("gpu_"));
    std::set<std::pair<const void*, SeriesPart>> seen;
    for (const pages::Page::Series& series : family.series) {
      fuzz::expect(has_author(series.labels));
      fuzz::expect(seen.emplace(series.labels.id(), series.part).second);
    }
  }
  return 0;
}
