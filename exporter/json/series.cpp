#include "exporter/json/series.hpp"

#include <algorithm>
#include <vector>

#include "base/json/scalars.hpp"

namespace gpumeter {
namespace {

/// A series copied from the store, so that its text is rendered without holding the store's mutex.
struct Copy {
  const MetricDescriptor* family;
  SeriesPart part;
  Labels labels;
  double value;
  Nanoseconds committed_at;

  std::string name() const { return std::string(family->name).append(suffix_of(part)); }
};

struct Matcher {
  std::string label;
  std::string value;
  bool is_equal = true;

  bool matches(const Copy& series) const {
    if (label == "__name__") return is_equal == (value == series.family->name || value == series.name());
    const std::vector<Labels::Pair> pairs = series.labels.pairs();
    const auto found = std::ranges::find(pairs, label, &Labels::Pair::first);
    return is_equal == (value == (found == pairs.end() ? std::string_view() : found->second));
  }
};
using Selector = std::vector<Matcher>;

bool take(std::string_view& text, char token) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!text.starts_with(token)) return false;
  text.remove_prefix(1);
  return true;
}

std::string take_name(std::string_view& text) {
  std::string name(text.substr(0, text.find_first_of(" {}=!,\"")));
  text.remove_prefix(name.size());
  return name;
}

/// `{label="value",label!="value"}`; `\` makes the next character of a value literal.
bool take_matchers(std::string_view& text, Selector& selector) {
  for (bool is_last = false; !take(text, '}'); is_last = !take(text, ',')) {
    Matcher& matcher = selector.emplace_back(take_name(text));
    matcher.is_equal = !take(text, '!');
    if (is_last || matcher.label.empty() || !take(text, '=') || !take(text, '"')) return false;
    for (; !text.empty() && text.front() != '"'; text.remove_prefix(1)) {
      if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
      matcher.value += text.front();
    }
    if (!take(text, '"')) return false;
  }
  return true;
}

Result<Selector> parse(std::string_view text) {
  std::string_view rest = text;
  Selector selector;
  if (std::string name = take_name(rest); !name.empty()) selector.emplace_back("__name__", std::move(name));
  const bool is_right = !take(rest, '{') || take_matchers(rest, selector);
  if (is_right && rest.find_first_not_of(' ') == std::string_view::npos && !selector.empty()) return selector;
  return Error("match=" + std::string(text) +
               ": use a name, label matchers with = or !=, or both, such as "
               "gpu_power_watts{gpu=\"0\",sensor!=\"board\"}; repeat match for alternatives");
}

std::string as_json(const Copy& series, Nanoseconds now) {
  std::string labels;
  for (const auto& [name, value] : series.labels.pairs()) {
    labels += (labels.empty() ? "" : ",") + json_quoted(name) + ":" + json_quoted(value);
  }
  return "{\"name\":" + json_quoted(series.name()) + ",\"labels\":{" + labels +
         "},\"value\":" + json_number(series.value) + ",\"unit\":" + json_quoted(series.family->unit) +
         ",\"type\":" + json_quoted(to_string(series.family->type)) +
         ",\"age_seconds\":" + json_number(std::max(0.0, to_seconds(now - series.committed_at))) + "}";
}

Result<std::vector<Selector>> parse(std::span<const std::string_view> match) {
  std::vector<Selector> selectors;
  for (const std::string_view text : match) {
    Result<Selector> selector = parse(text);
    if (!selector) return selector.error();
    selectors.push_back(*std::move(selector));
  }
  return selectors;
}

bool selects(const std::vector<Selector>& selectors, const Copy& series) {
  return selectors.empty() || std::ranges::any_of(selectors, [&](const Selector& selector) {
           return std::ranges::all_of(selector, [&](const Matcher& each) { return each.matches(series); });
         });
}

// The text is made from the copies after the walk, so that no commit waits for it.
std::vector<Copy> copied(const Store& store, const std::vector<Selector>& selectors) {
  std::vector<Copy> selected;
  store.walk_in_slices([&](const Family& family) {
    family.for_each([&](const Series& it) {
      Copy series{&family.descriptor(), it.part(), it.labels(), it.value(), it.committed_at()};
      if (selects(selectors, series)) selected.push_back(std::move(series));
    });
  });
  return selected;
}

}  // namespace

Result<std::string> series_json(const Store& store, std::span<const std::string_view> match,
                                Nanoseconds now) {
  const Result<std::vector<Selector>> selectors = parse(match);
  if (!selectors) return selectors.error();
  std::string body = "{\"series\":[";
  for (const Copy& series : copied(store, *selectors)) {
    body += (body.ends_with('[') ? "\n" : ",\n") + as_json(series, now);
  }
  return body + "\n]}\n";
}

}  // namespace gpumeter
