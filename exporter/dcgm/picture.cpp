#include "exporter/dcgm/picture.hpp"

#include <algorithm>
#include <set>

#include "collectors/api/catalog.hpp"
#include "exporter/dcgm/rows.hpp"

namespace gpumeter::dcgm {
namespace {

/// Families that belong to all cards together or whose order matters; the others are looked up by card.
constexpr const MetricDescriptor* kWhole[] = {&catalog::info, &catalog::workload_info,
                                              &catalog::workload_share, &catalog::allocation_info};

std::set<std::string, std::less<>> wanted_families() {
  std::set<std::string, std::less<>> names{std::string(catalog::utilization.name),
                                           partition_family(catalog::utilization.name),
                                           std::string(catalog::xid_errors.name)};
  for (const MetricDescriptor* family : kWhole) names.emplace(family->name);
  for (const Row& row : rows()) {
    names.emplace(row.family->name);
    if (row.form == Form::divided) names.insert(partition_family(row.family->name));
  }
  return names;
}

template <class Map, class Key>
const Picture::Samples& found(const Map& map, const Key& key) {
  static const Picture::Samples kNone;
  const auto it = map.find(key);
  return it == map.end() ? kNone : it->second;
}

}  // namespace

std::string partition_family(std::string_view family) {
  constexpr std::string_view kPrefix = "gpu_";
  return "gpu_partition_" + std::string(family.substr(kPrefix.size()));
}

std::string_view Sample::label(std::string_view name) const noexcept {
  const auto it = std::ranges::find(pairs_, name, &Labels::Pair::first);
  return it == pairs_.end() ? std::string_view() : it->second;
}

Picture::Picture(const Store& store, const Filter& filter) {
  static const std::set<std::string, std::less<>> kWanted = wanted_families();
  generation_ = store.walk([&](const Family& family) {
    if (kWanted.contains(family.descriptor().name)) copy(family, filter);
  });
}

void Picture::copy(const Family& family, const Filter& filter) {
  const std::string name(family.descriptor().name);
  const bool is_whole = std::ranges::find(kWhole, name, &MetricDescriptor::name) != std::end(kWhole);
  family.for_each([&](const Series& series) {
    if (!filter.wants(series.collector())) return;
    Sample sample(series.labels(), series.value());
    if (is_whole) {
      families_[name].push_back(std::move(sample));
    } else if (const std::string uuid(sample.label("uuid")); !uuid.empty()) {
      of_cards_[{name, uuid}].push_back(std::move(sample));
    }
  });
}

const Picture::Samples& Picture::of(std::string_view family) const { return found(families_, family); }

const Picture::Samples& Picture::of(std::string_view family, std::string_view uuid) const {
  return found(of_cards_, std::pair(std::string(family), std::string(uuid)));
}

}  // namespace gpumeter::dcgm
