#include "exporter/text/selection.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gpumeter {
namespace {

using options::Complaint;
using options::Node;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

using Glob = std::vector<std::string>;

constexpr char kAny = '*';

bool matches(const Glob& glob, std::string_view text) noexcept {
  if (glob.size() == 1) return text == glob.back();
  if (!text.starts_with(glob.front())) return false;
  text.remove_prefix(glob.front().size());
  for (std::size_t i = 1; i + 1 < glob.size(); ++i) {
    const std::size_t at = text.find(glob[i]);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + glob[i].size());
  }
  return text.ends_with(glob.back());
}

constexpr bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool take(std::string_view& text, char token) noexcept {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(1);
  return true;
}

void add(Glob& glob, char c, bool is_literal) {
  if (c == kAny && !is_literal) {
    glob.emplace_back();
  } else {
    glob.back() += c;
  }
}

/// False if the text does not start with a name.
bool take_name(std::string_view& text, Glob& name) {
  const std::size_t before = text.size();
  for (; !text.empty() && (is_name_character(text.front()) || text.front() == kAny); text.remove_prefix(1)) {
    add(name, text.front(), false);
  }
  return text.size() < before;
}

/// False if the text does not start with a value in quotes.
bool take_value(std::string_view& text, Glob& value) {
  if (!take(text, '"')) return false;
  for (; !text.empty() && text.front() != '"'; text.remove_prefix(1)) {
    const bool is_literal = text.front() == '\\' && text.size() > 1;
    if (is_literal) text.remove_prefix(1);
    add(value, text.front(), is_literal);
  }
  return take(text, '"');
}

bool take_labels(std::string_view& text, std::vector<std::pair<std::string, Glob>>& labels) {
  if (!take(text, '{')) return false;
  do {
    auto& [name, value] = labels.emplace_back("", Glob{""});
    for (; !text.empty() && is_name_character(text.front()); text.remove_prefix(1)) name += text.front();
    if (name.empty() || !take(text, '=') || !take_value(text, value)) return false;
  } while (take(text, ','));
  return take(text, '}');
}

}  // namespace

Result<SeriesPattern> SeriesPattern::parse(std::string_view text) {
  SeriesPattern pattern;
  pattern.text_ = text;
  const bool has_name = take_name(text, pattern.name_);
  if (has_name && (text.empty() || (take_labels(text, pattern.labels_) && text.empty()))) return pattern;
  return Error("must be the name of a family, such as gpu_link_* or gpu_xid_errors_total{xid=\"31\"}");
}

bool SeriesPattern::matches_name(std::string_view family) const noexcept { return matches(name_, family); }

bool SeriesPattern::matches_labels(const std::vector<Labels::Pair>& labels) const noexcept {
  return std::ranges::all_of(labels_, [&labels](const auto& wanted) {
    return std::ranges::any_of(labels, [&wanted](const Labels::Pair& label) {
      return label.first == wanted.first && matches(wanted.second, label.second);
    });
  });
}

bool PageSelection::is_whole(const MetricDescriptor& family) const noexcept {
  const auto is_its = [&](const SeriesPattern& pattern) { return pattern.matches_name(family.name); };
  const bool has_all = detail == MetricsDetail::full || family.detail.level == Detail::Level::standard;
  return has_all && std::ranges::none_of(exclude, is_its);
}

Appearance PageSelection::appearance_of(const MetricDescriptor& family, const Labels& labels) const {
  const std::vector<Labels::Pair> pairs = labels.pairs();
  const auto selects = [&](const SeriesPattern& by) {
    return by.matches_name(family.name) && by.matches_labels(pairs);
  };
  if (std::ranges::any_of(include, selects)) return Appearance::always;
  if (std::ranges::any_of(exclude, selects)) return Appearance::never;
  const Detail& wanted = family.detail;
  const bool is_named = std::ranges::find(pairs, Labels::Pair(wanted.label, wanted.value)) != pairs.end();
  if (detail == MetricsDetail::full || wanted.level == Detail::Level::standard || is_named)
    return Appearance::always;
  return wanted.level == Detail::Level::nonzero ? Appearance::nonzero : Appearance::never;
}

std::string type_words(const std::vector<SeriesPattern>&) { return "list of texts"; }

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
    option<&PageSelection::detail>("detail", Reload::applies, "Series of the metrics page. standard: those that the shipped rules, alerts and dashboards read, and counters of errors from the first error on (docs/scrape.md, \"The price of a series\"). full: all. All other pages have all series."),
    option<&PageSelection::include>("include", Reload::applies, "Series that the metrics page has in any case, as `NAME` or `NAME{label=\"VALUE\"}`; `*` is any text: `gpu_xid_errors_total{xid=\"31\"}`, `gpu_pcie_*`."),
    option<&PageSelection::exclude>("exclude", Reload::applies, "Series that the metrics page omits, unless `include` has them: `gpu_throttle_*`, `gpu_clock_hertz{clock=\"video\"}`. Alerts and panels that read them show nothing."),
};
// clang-format on

}  // namespace

constinit const options::Section kMetricsSection = options::section("metrics", kOptions);

}  // namespace gpumeter
