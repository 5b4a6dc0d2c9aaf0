#include "exporter/text/selection.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr char kAny = '*';

constexpr bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool take(std::string_view& text, char token) noexcept {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

bool SeriesPattern::Glob::matches(std::string_view text) const noexcept {
  const std::string_view last = parts_.back();
  if (parts_.size() == 1) return text == last;
  if (!text.starts_with(parts_.front())) return false;
  text.remove_prefix(parts_.front().size());
  for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
    const std::size_t at = text.find(parts_[i]);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + parts_[i].size());
  }
  return text.ends_with(last);
}

bool SeriesPattern::matches_name(std::string_view family) const noexcept { return name_.matches(family); }

bool SeriesPattern::matches_labels(const std::vector<Labels::Pair>& labels) const noexcept {
  return std::ranges::all_of(labels_, [&labels](const Label& wanted) {
    return std::ranges::any_of(labels, [&wanted](const Labels::Pair& label) {
      return label.first == wanted.name && wanted.value.matches(label.second);
    });
  });
}

Result<SeriesPattern> SeriesPattern::parse(std::string_view text) {
  SeriesPattern pattern;
  pattern.text_ = text;
  std::string_view rest = text;
  const bool has_name = take_name(rest, pattern.name_);
  if (has_name && (rest.empty() || (pattern.take_labels(rest) && rest.empty()))) return pattern;
  return Error("must be the name of a family, such as gpu_link_* or gpu_xid_errors_total{xid=\"31\"}");
}

bool SeriesPattern::take_name(std::string_view& text, Glob& name) {
  const std::size_t before = text.size();
  for (; !text.empty() && (is_name_character(text.front()) || text.front() == kAny); text.remove_prefix(1)) {
    text.front() == kAny ? name.add_wildcard() : name.add(text.front());
  }
  return text.size() < before;
}

bool SeriesPattern::take_value(std::string_view& text, Glob& value) {
  if (!take(text, '"')) return false;
  for (; !text.empty() && text.front() != '"'; text.remove_prefix(1)) {
    const bool is_literal = text.front() == '\\' && text.size() > 1;
    if (is_literal) text.remove_prefix(1);
    !is_literal&& text.front() == kAny ? value.add_wildcard() : value.add(text.front());
  }
  return take(text, '"');
}

bool SeriesPattern::take_labels(std::string_view& text) {
  if (!take(text, '{')) return false;
  do {
    Label& label = labels_.emplace_back();
    for (; !text.empty() && is_name_character(text.front()); text.remove_prefix(1))
      label.name += text.front();
    if (label.name.empty() || !take(text, '=') || !take_value(text, label.value)) return false;
  } while (take(text, ','));
  return take(text, '}');
}

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
    option<&PageSelection::detail>("detail", Reload::applies, "Series of the metrics page. standard: those that the shipped rules, alerts and dashboards read, and counters of errors from the first error on (docs/scrape.md, \"The price of a series\"). full: all. All other pages have all series."),
    option<&PageSelection::include>("include", Reload::applies, "Series that the metrics page has in any case, as `NAME` or `NAME{label=\"VALUE\"}`; `*` is any text: `gpu_xid_errors_total{xid=\"31\"}`, `gpu_pcie_*`."),
    option<&PageSelection::exclude>("exclude", Reload::applies, "Series that the metrics page omits, unless `include` has them: `gpu_throttle_*`, `gpu_clock_hertz{clock=\"video\"}`. Alerts and panels that read them show nothing."),
};
// clang-format on

}  // namespace

constinit const options::Section kMetricsSection = options::section("metrics", kOptions);

Shown LateSeries::counter(double value, const PageTime& now) noexcept {
  const bool begins = !has_begun_ && value != 0;
  const bool was_reset = has_begun_ && value < last_;
  if ((begins && was_zero_) || was_reset) since_ = to_seconds(last_page_);
  if (begins) zero_until_ = now.monotonic + (was_zero_ ? kZeroFirst : Nanoseconds{});
  has_begun_ = has_begun_ || begins;
  was_zero_ = was_zero_ || value == 0;
  last_ = value;
  last_page_ = now.realtime;
  if (!has_begun_) return {};
  return {true, now.monotonic < zero_until_ ? 0 : value, since_};
}

bool FamilySeries::refresh(const Family& family, const PageSelection& selection, std::uint64_t selected) {
  if (version_ == family.version() && selected_ == selected) return false;
  if (selected_ != selected) late_.clear();
  version_ = family.version();
  selected_ = selected;
  is_counter_ = family.descriptor().type == MetricType::counter;
  appearances_.clear();
  const FamilySelection of_family(selection, family.descriptor());
  if (!of_family.is_whole()) decide(family, of_family);
  return true;
}

void FamilySeries::decide(const Family& family, const FamilySelection& selection) {
  std::map<Key, Late> known;
  known.swap(late_);
  family.for_each_listed([&](const Labels& labels, SeriesPart part) {
    const Appearance appearance = selection.appearance_of(labels);
    appearances_.push_back(appearance);
    if (appearance != Appearance::nonzero || !is_counter_) return;
    const Key key(labels.id(), part);
    const auto before = known.find(key);
    late_.insert_or_assign(key, before == known.end() ? Late{labels} : std::move(before->second));
  });
  appearances_.shrink_to_fit();
}

Shown FamilySeries::look_at(const Series& series, const PageTime& now) noexcept {
  const Appearance appearance = appearances_[series.position()];
  if (appearance == Appearance::never) return {};
  if (appearance == Appearance::always) return {true, series.value(), series.since()};
  if (!is_counter_) return {series.value() != 0, series.value(), 0};
  const auto late = late_.find({series.labels().id(), series.part()});
  return late == late_.end() ? Shown{} : late->second.series.counter(series.value(), now);
}

}  // namespace gpumeter
