#include "exporter/text/selection.hpp"

#include <algorithm>

namespace gpumeter {

using options::Complaint;
using options::Node;
using options::Option;
using options::option;
using options::printable;
using options::Reload;
namespace {

std::vector<const SeriesPattern*> for_family(const std::vector<SeriesPattern>& patterns,
                                             std::string_view name) {
  std::vector<const SeriesPattern*> matching;
  for (const SeriesPattern& pattern : patterns) {
    if (pattern.matches_name(name)) matching.push_back(&pattern);
  }
  return matching;
}

Appearance appearance_at(Detail::Level level) noexcept {
  if (level == Detail::Level::standard) return Appearance::always;
  return level == Detail::Level::nonzero ? Appearance::nonzero : Appearance::never;
}

}  // namespace

FamilySelection::FamilySelection(const PageSelection& selection, const MetricDescriptor& family)
    : family_(family),
      is_full_(selection.detail == MetricsDetail::full),
      include_(for_family(selection.include, family.name)),
      exclude_(for_family(selection.exclude, family.name)),
      is_whole_(exclude_.empty() && (is_full_ || family.detail.level == Detail::Level::standard)) {}

Appearance FamilySelection::appearance_of(const Labels& labels) const {
  const std::vector<Labels::Pair> pairs = labels.pairs();
  const auto is_selected = [&pairs](const SeriesPattern* by) { return by->matches_labels(pairs); };
  if (std::ranges::any_of(include_, is_selected)) return Appearance::always;
  if (std::ranges::any_of(exclude_, is_selected)) return Appearance::never;
  const Detail& detail = family_.detail;
  const auto is_named = [&detail](const Labels::Pair& pair) {
    return pair.first == detail.label && pair.second == detail.value;
  };
  const bool is_always = is_full_ || std::ranges::any_of(pairs, is_named);
  return is_always ? Appearance::always : appearance_at(detail.level);
}

std::string type_words(const std::vector<SeriesPattern>&) { return "list of texts"; }

/// A complaint has the line of its pattern.
Complaint read(const Node& node, std::vector<SeriesPattern>& patterns) {
  std::vector<std::string> texts;
  if (Complaint complaint = options::read(node, texts)) return complaint;
  std::vector<SeriesPattern> parsed;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Result<SeriesPattern> pattern = SeriesPattern::parse(texts[i]);
    if (!pattern) {
      return options::Wrong(pattern.error().message() + ", not \"" + printable(texts[i]) + "\"",
                            node.children[i].line);
    }
    parsed.push_back(*std::move(pattern));
  }
  patterns = std::move(parsed);
  return std::nullopt;
}

std::string show(const std::vector<SeriesPattern>& patterns) {
  std::vector<std::string> texts;
  for (const SeriesPattern& pattern : patterns) texts.push_back(pattern.text());
  return options::show(texts);
}

namespace {

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&PageSelection::detail>("detail", Reload::applies, "Series of the metrics page. standard: those that the shipped rules, alerts and dashboards read, and counters of errors from the first error on (docs/operations.md, \"The price of a series\"). full: all. All other pages have all series."),
    option<&PageSelection::include>("include", Reload::applies, "Series that the metrics page has in any case, as `NAME` or `NAME{label=\"VALUE\"}`; `*` is any text: `gpu_xid_errors_total{xid=\"31\"}`, `gpu_pcie_*`."),
    option<&PageSelection::exclude>("exclude", Reload::applies, "Series that the metrics page omits, unless `include` has them: `gpu_throttle_*`, `gpu_clock_hertz{clock=\"video\"}`. Alerts and panels that read them show nothing."),
};
// clang-format on

}  // namespace

constinit const options::Section kMetricsSection = options::section("metrics", kOptions);

}  // namespace gpumeter
