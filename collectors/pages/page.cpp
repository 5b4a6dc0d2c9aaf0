#include "collectors/pages/page.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "collectors/sources/page/sample_lines.hpp"

namespace gpumeter::pages {
namespace {

using Complaint = std::optional<std::string>;

bool is_label_name(std::string_view name) {
  return is_metric_name(name) && name.find(':') == std::string_view::npos && !name.starts_with("__");
}

/// The line of the first byte that is not UTF-8 or is NUL; 0: there is none.
std::size_t line_of_invalid(std::string_view text) {
  std::size_t line = 1;
  while (!text.empty()) {
    const Character next = take_character(text);
    if (!next || next.code == 0) return line;
    if (next.code == '\n') ++line;
  }
  return 0;
}

/// Help text without its escapes.
std::string help_of(std::string_view text) {
  std::string help;
  while (!text.empty()) {
    char next = text.front();
    text.remove_prefix(1);
    if (next == '\\' && (text.starts_with('\\') || text.starts_with('n'))) {
      next = text.front() == 'n' ? '\n' : '\\';
      text.remove_prefix(1);
    }
    help += next;
  }
  return help;
}

std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text = trimmed(text.substr(word.size()));
  return word;
}

std::string_view value_of(const std::vector<Label>& pairs, std::string_view name) {
  const auto found = std::ranges::find(pairs, name, &Label::name);
  return found == pairs.end() ? std::string_view() : found->value;
}

bool is_bound(const Label& label) { return label.name == "le" || label.name == "quantile"; }

bool has_parts(MetricType type) { return type == MetricType::histogram || type == MetricType::summary; }

std::string_view bound_label(MetricType type) { return type == MetricType::histogram ? "le" : "quantile"; }

/// The value of the label `le` or `quantile`.
std::optional<double> bound_of(const Page::Series& series, std::string_view label) {
  const std::string_view text = value_of(series.pairs, label);
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  const auto bound = parse_number<double>(text);
  return bound && std::isnan(*bound) ? std::nullopt : bound;
}

/// The labels but this one, in an order that does not depend on the page. An empty value is no label.
using Key = std::vector<std::pair<std::string_view, std::string_view>>;
Key key_of(const Page::Series& series, std::string_view without) {
  Key key;
  for (const auto& [name, value] : series.pairs) {
    if (name != without && !value.empty()) key.emplace_back(name, value);
  }
  std::ranges::sort(key);
  return key;
}

/// The lines of a series that occurs twice, the later one first.
std::optional<std::pair<std::size_t, std::size_t>> twice(const Page::Family& of) {
  std::map<std::pair<SeriesPart, Key>, std::size_t> seen;
  for (const Page::Series& series : of.series) {
    const auto [first, is_new] = seen.try_emplace({series.part, key_of(series, {})}, series.line);
    if (!is_new) return std::pair(series.line, first->second);
  }
  return std::nullopt;
}

/// Puts the parts of each histogram or summary together and checks that they are whole.
class Grouping {
 public:
  explicit Grouping(Page::Family& family) : family_(family), label_(bound_label(family.type)) {}

  std::optional<BadLine> run() {
    std::map<Key, std::size_t> known;
    std::vector<std::vector<Page::Series*>> groups;
    for (Page::Series& series : family_.series) {
      const auto [group, is_new] = known.try_emplace(key_of(series, label_), groups.size());
      if (is_new) groups.emplace_back();
      groups[group->second].push_back(&series);
    }
    std::vector<Page::Series> sorted;
    for (auto& group : groups) {
      std::ranges::stable_sort(group, {}, [&](const Page::Series* each) {
        return std::tuple(each->part, bound_of(*each, label_).value_or(0));
      });
      if (Complaint complaint = check(group)) return BadLine{group.front()->line, *std::move(complaint)};
      for (Page::Series* const each : group) sorted.push_back(*each);
    }
    family_.series = std::move(sorted);
    return std::nullopt;
  }

 private:
  Complaint check(const std::vector<Page::Series*>& group) const {
    const auto has = [&](SeriesPart part) {
      return std::ranges::count(group, part, &Page::Series::part) == 1;
    };
    if (!has(SeriesPart::sum) || !has(SeriesPart::count)) {
      return "the " + std::string(to_string(family_.type)) + " must have one _sum and one _count";
    }
    if (family_.type == MetricType::summary) return std::nullopt;
    const Page::Series* last = nullptr;
    for (const Page::Series* const each : group) {
      if (each->part != SeriesPart::bucket) break;
      if (last != nullptr && bound_of(*last, label_) == bound_of(*each, label_))
        return "two buckets have the same bound";
      if (last != nullptr && each->value < last->value) return "the counts of the buckets must not fall";
      last = each;
    }
    if (last != nullptr && *bound_of(*group.front(), label_) < 0) return "a bound must not be below 0";
    const double count = group.back()->value;
    if (last != nullptr && std::isinf(*bound_of(*last, label_)) && last->value == count) return std::nullopt;
    return "the last bucket must have le=\"+Inf\" and the histogram's _count";
  }

  Page::Family& family_;
  const std::string_view label_;
};

class Reader {
 public:
  Reader(std::string_view text, std::size_t most) : text_(text), most_(most), lines_(text) {}

  std::optional<BadLine> run() {
    if (const std::size_t line = line_of_invalid(text_)) return BadLine{line, "is not UTF-8 text"};
    using enum SampleLines::Line;
    for (auto line = lines_.next_line(); line != end; line = lines_.next_line()) {
      Complaint complaint = "is not a sample";
      if (line == comment) complaint = take_comment(lines_.comment());
      if (line == sample) complaint = take(lines_.sample());
      if (complaint) return BadLine{lines_.line(), *std::move(complaint)};
    }
    return finish();
  }

  Page page;

 private:
  Page::Family& family(std::string_view name) {
    const auto [known, is_new] = by_name_.try_emplace(std::string(name), page.families.size());
    if (is_new) page.families.push_back({known->first, {}, MetricType::untyped, lines_.line(), {}});
    return page.families[known->second];
  }

  Complaint take_comment(std::string_view text) {
    const std::string_view keyword = take_word(text);
    if (keyword == "gpumeter:") return take_directive(text);
    if (keyword != "HELP" && keyword != "TYPE") return std::nullopt;
    const std::string_view name = take_word(text);
    if (!is_metric_name(name)) return "Prometheus accepts no name " + quoted(name);
    Page::Family& of = family(name);
    if (keyword == "TYPE") return take_type(of, text);
    if (of.help) return "a second HELP of " + of.name;
    of.help = help_of(text);
    return std::nullopt;
  }

  Complaint take_directive(std::string_view text) {
    const std::string_view keyword = take_word(text);
    page.expires = keyword == "expires" ? parse_duration(text) : std::nullopt;
    if (page.expires && page.expires->count() > 0 && *page.expires <= kLongestPage) return std::nullopt;
    return "must be `# gpumeter: expires DURATION`, where DURATION is " + std::string(kDurationForm) +
           ", of at most 31 days";
  }

  Complaint take_type(Page::Family& of, std::string_view word) {
    if (!typed_.insert(of.name).second) return "a second TYPE of " + of.name;
    if (!of.series.empty()) return "TYPE must be before the samples of " + of.name;
    using enum MetricType;
    for (const MetricType type : {gauge, counter, histogram, summary, untyped}) {
      if (word == to_string(type)) of.type = type;
    }
    if (word == to_string(of.type) || word == "unknown") return std::nullopt;
    return "TYPE must be gauge, counter, histogram, summary or untyped, not " + quoted(word);
  }

  /// The family of a sample, with the part that it is.
  std::pair<Page::Family*, SeriesPart> family_of(std::string_view name) {
    using enum SeriesPart;
    for (const SeriesPart part : {bucket, sum, count}) {
      if (!name.ends_with(suffix_of(part))) continue;
      const auto known = by_name_.find(name.substr(0, name.size() - suffix_of(part).size()));
      if (known == by_name_.end()) continue;
      Page::Family& of = page.families[known->second];
      if (of.type == MetricType::histogram || (of.type == MetricType::summary && part != bucket))
        return {&of, part};
    }
    return {&family(name), value};
  }

  Complaint take(const SampleLine& line) {
    if (!is_metric_name(line.name)) return "Prometheus accepts no name " + quoted(line.name);
    if (!line.rest.empty()) return "a sample must end with its value; timestamps are not accepted";
    if (++count_ > most_) return "the page has more than " + std::to_string(most_) + " series";
    std::set<std::string_view> names;
    for (const Label& label : line.labels) {
      if (!is_label_name(label.name))
        return "Prometheus accepts no label " + quoted(std::string_view(label.name));
      if (!names.insert(label.name).second) return "the label " + label.name + " occurs twice";
    }
    const auto [of, part] = family_of(line.name);
    const Page::Series series{part, line.labels, line.value, lines_.line()};
    if (Complaint complaint = check(*of, series)) return complaint;
    of->series.push_back(series);
    return std::nullopt;
  }

  static Complaint check(const Page::Family& of, const Page::Series& series) {
    const bool is_value = series.part == SeriesPart::value;
    const bool counts = of.type == MetricType::counter || (!is_value && series.part != SeriesPart::sum);
    if (counts && !(series.value >= 0)) return "a counter must not be below 0, or NaN";
    if (!is_value && std::isnan(series.value)) return "a sum must not be NaN";
    if (of.type == MetricType::histogram && is_value)
      return "a sample of a histogram ends with _bucket, _sum or _count";
    const bool has_bound = series.part == SeriesPart::bucket || (of.type == MetricType::summary && is_value);
    const auto bound = bound_of(series, bound_label(of.type));
    if (has_bound && !bound) return "the label " + std::string(bound_label(of.type)) + " must be a number";
    const bool is_share = of.type != MetricType::summary || !is_value || (*bound >= 0 && *bound <= 1);
    if (!is_share) return "the label quantile must be from 0 to 1";
    return std::nullopt;
  }

  std::optional<BadLine> finish() {
    std::erase_if(page.families, [](const Page::Family& each) { return each.series.empty(); });
    for (Page::Family& each : page.families) {
      if (const auto lines = twice(each)) {
        return BadLine{lines->first, "the same series as in line " + std::to_string(lines->second)};
      }
      if (!has_parts(each.type)) continue;
      if (auto wrong = Grouping(each).run()) return wrong;
    }
    return std::nullopt;
  }

  const std::string_view text_;
  const std::size_t most_;
  SampleLines lines_;
  std::size_t count_ = 0;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::set<std::string> typed_;
};

/// What rules and dashboards read as the word of gpumeter (gpu_, ml_, gpumeter_, process_, and DCGM_ by the
/// page for NVIDIA's dashboards) or of Prometheus itself (its series about targets and alerts).
constexpr std::string_view kReserved[] = {"gpu_",  "gpumeter_", "ml_",    "process_",
                                          "DCGM_", "scrape_",   "ALERTS_"};

/// Names with a colon are those of recording rules. The lines of a histogram `gpu` begin with gpu_.
bool may_use(std::string_view name) {
  const std::string line = std::string(name) + "_";
  const auto is_start = [&](std::string_view prefix) { return line.starts_with(prefix); };
  return name != "up" && name.find(':') == std::string_view::npos &&
         std::ranges::none_of(kReserved, is_start);
}

void complete(std::vector<Label>& labels, const Devices& devices) {
  const std::string gpu(value_of(labels, "gpu"));
  const std::string uuid(value_of(labels, "uuid"));
  if (gpu.empty() == uuid.empty()) return;
  const auto device = std::ranges::find_if(
      devices, [&](const auto& each) { return gpu.empty() ? each.second == uuid : each.first == gpu; });
  if (device == devices.end()) return;
  labels.push_back(gpu.empty() ? Label{"gpu", device->first} : Label{"uuid", device->second});
}

Complaint speaks_for_others(const std::vector<Label>& labels, const Author& author) {
  for (const std::string_view name : {"author", "user"}) {
    const std::string_view value = value_of(labels, name);
    if (value.empty() || value == author.name) continue;
    return "the label " + std::string(name) + " must be that of the file's owner, " +
           quoted(std::string_view(author.name));
  }
  return std::nullopt;
}

/// Adds the author of a page that is not trusted. Returns what is wrong with its labels.
Complaint sign(std::vector<Label>& labels, const Author& author) {
  if (author.is_trusted) return std::nullopt;
  if (auto complaint = speaks_for_others(labels, author)) return complaint;
  std::erase_if(labels, [](const Label& each) { return each.name == "author"; });
  labels.push_back({"author", author.name});
  return std::nullopt;
}

}  // namespace

Page read_page(std::string_view text, std::size_t most_series, std::optional<BadLine>& wrong) {
  Reader reader(text, most_series);
  wrong = reader.run();
  return wrong ? Page() : std::move(reader.page);
}

std::optional<BadLine> sign(Page& page, const Author& author, const Devices& devices) {
  for (Page::Family& family : page.families) {
    if (!author.is_trusted && !may_use(family.name))
      return BadLine{family.line, "only root and gpumeter's own programs may use the name " + family.name};
    for (Page::Series& series : family.series) {
      if (Complaint complaint = sign(series.pairs, author))
        return BadLine{series.line, *std::move(complaint)};
      complete(series.pairs, devices);
    }
    // With the labels that are added here, two series may become one.
    if (const auto lines = twice(family)) {
      return BadLine{lines->first, "the same series as another one, with the labels that gpumeter adds"};
    }
    for (Page::Series& series : family.series) {
      std::vector<Label> key = std::exchange(series.pairs, {});
      series.labels = Labels(key);
      if (has_parts(family.type)) std::erase_if(key, is_bound);
      std::ranges::sort(key, {}, &Label::name);
      series.key = Labels(key);
    }
  }
  return std::nullopt;
}

}  // namespace gpumeter::pages
