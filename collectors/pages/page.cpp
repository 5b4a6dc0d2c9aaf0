#include "collectors/pages/page.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text.hpp"

namespace gpumeter::pages {
namespace {

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

std::string_view value_of(const std::vector<Label>& labels, std::string_view name) {
  const auto found = std::ranges::find(labels, name, &Label::name);
  return found == labels.end() ? std::string_view() : found->value;
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

Labels key_of(std::vector<Label> labels, MetricType type) {
  const bool has_parts = type == MetricType::histogram || type == MetricType::summary;
  if (has_parts)
    std::erase_if(labels, [](const Label& each) { return each.name == "le" || each.name == "quantile"; });
  std::ranges::sort(labels, {}, &Label::name);
  return Labels(labels);
}

std::optional<std::string> speaks_for_others(const std::vector<Label>& labels, const Author& author) {
  for (const std::string_view name : {"author", "user"}) {
    const std::string_view value = value_of(labels, name);
    if (value.empty() || value == author.name) continue;
    return "the label " + std::string(name) + " must be that of the file's owner, " +
           quoted(std::string_view(author.name));
  }
  return std::nullopt;
}

/// With the labels that are added here, two series of a page may become one.
std::optional<BadLine> twice(const Page& page) {
  std::set<std::tuple<std::size_t, const void*, SeriesPart, std::string>> seen;
  for (const Page::Series& series : page.series) {
    std::string bound;
    for (const auto& [name, value] : series.labels.pairs()) {
      if (name == "le" || name == "quantile") bound = value;
    }
    if (seen.emplace(series.family, series.key.id(), series.part, std::move(bound)).second) continue;
    return BadLine{series.line, "the same series as another one, with the labels that gpumeter adds"};
  }
  return std::nullopt;
}

/// Adds the author of a page that is not trusted. Returns what is wrong with its labels.
std::optional<std::string> sign(std::vector<Label>& labels, const Author& author) {
  if (author.is_trusted) return std::nullopt;
  if (auto complaint = speaks_for_others(labels, author)) return complaint;
  std::erase_if(labels, [](const Label& each) { return each.name == "author"; });
  labels.push_back({"author", author.name});
  return std::nullopt;
}

}  // namespace

Page page_of(PageText text, const Author& author, const Devices& devices, std::optional<BadLine>& wrong) {
  Page page{{}, {}, text.expires};
  for (PageFamily& family : text.families) {
    if (!author.is_trusted && !may_use(family.name)) {
      wrong = {family.line, "only root and gpumeter's own programs may use the name " + family.name};
      return {};
    }
    for (PageSeries& series : family.series) {
      if (auto complaint = sign(series.labels, author)) {
        wrong = {series.line, *std::move(complaint)};
        return {};
      }
      complete(series.labels, devices);
      page.series.push_back({page.families.size(), Labels(series.labels), key_of(series.labels, family.type),
                             series.part, series.value, series.line});
    }
    page.families.push_back({std::move(family.name), std::move(family.help), family.type, family.line});
  }
  wrong = twice(page);
  return wrong ? Page() : page;
}

}  // namespace gpumeter::pages
