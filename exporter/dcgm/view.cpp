#include "exporter/dcgm/view.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "exporter/dcgm/rows.hpp"
#include "exporter/text/syntax.hpp"

namespace gpumeter::dcgm {
namespace {

/// The name of the family that has a divided card's instances: gpu_X becomes gpu_partition_X.
std::string partition_family(std::string_view family) {
  constexpr std::string_view kPrefix = "gpu_";
  return "gpu_partition_" + std::string(family.substr(kPrefix.size()));
}

/// A series copied from the store.
class Sample {
 public:
  Sample(const Labels& labels, double value) : labels_(labels), pairs_(labels_.pairs()), value_(value) {}

  /// Empty if there is no such label.
  std::string_view label(std::string_view name) const noexcept {
    const auto it = std::ranges::find(pairs_, name, &Labels::Pair::first);
    return it == pairs_.end() ? std::string_view() : it->second;
  }
  double value() const noexcept { return value_; }

 private:
  Labels labels_;
  std::vector<Labels::Pair> pairs_;  ///< views of the shared copy of labels_
  double value_;
};
using Samples = std::vector<Sample>;

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

/// The families that dcgm-exporter's metrics are made from, as they are at one moment, by family and card. It
/// is a copy, so that no commit waits for the text.
class Picture {
 public:
  Picture(const Store& store, const Filter& filter) {
    static const std::set<std::string, std::less<>> kWanted = wanted_families();
    generation_ = store.walk([&](const Family& family) {
      if (kWanted.contains(family.descriptor().name)) copy(family, filter);
    });
  }

  /// All series of the family, in the store's order.
  const Samples& of(std::string_view family) const { return found(families_, family); }
  /// Those of one card.
  const Samples& of(std::string_view family, std::string_view uuid) const {
    return found(of_cards_, std::pair(std::string(family), std::string(uuid)));
  }
  /// The store's generation.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  template <class Map, class Key>
  static const Samples& found(const Map& map, const Key& key) {
    static const Samples kNothing;
    const auto it = map.find(key);
    return it == map.end() ? kNothing : it->second;
  }

  void copy(const Family& family, const Filter& filter) {
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

  std::map<std::string, Samples, std::less<>> families_;
  std::map<std::pair<std::string, std::string>, Samples> of_cards_;
  std::uint64_t generation_ = 0;
};

/// A card's value of one row, in gpumeter's base unit.
struct Value {
  std::string partition = {};  ///< "1g.18gb:7"; empty: the card as a whole
  double value = 0;
};

bool matches(const Row& row, const Sample& sample) {
  return row.label.empty() || sample.label(row.label) == row.value;
}

std::vector<Value> sum(const Row& row, const Samples& samples) {
  std::optional<double> total;
  for (const Sample& sample : samples) {
    if (matches(row, sample)) total = total.value_or(0) + sample.value();
  }
  return total ? std::vector<Value>{{"", *total}} : std::vector<Value>();
}

std::vector<Value> of_partitions(const Row& row, const Samples& samples, bool all) {
  std::vector<Value> values;
  for (const Sample& sample : samples) {
    if (all || matches(row, sample)) {
      values.push_back({std::string(sample.label("partition")), sample.value()});
    }
  }
  return values;
}

// As in the rule pack, a series with any label means that the card is divided.
std::vector<Value> divided(const Row& row, const Picture& picture, std::string_view uuid) {
  const Samples& partitions = picture.of(partition_family(row.family->name), uuid);
  if (!partitions.empty()) return of_partitions(row, partitions, false);
  return sum(row, picture.of(row.family->name, uuid));
}

std::vector<Value> graphics(const Row& row, const Picture& picture, std::string_view uuid) {
  const Samples& partitions = picture.of(partition_family(catalog::utilization.name), uuid);
  if (!partitions.empty()) return of_partitions(row, partitions, true);
  std::vector<Value> engine = sum(row, picture.of(row.family->name, uuid));
  if (!engine.empty()) return engine;
  for (const Sample& sample : picture.of(catalog::utilization.name, uuid)) {
    engine.push_back({"", sample.value()});
  }
  return engine;
}

std::optional<unsigned> code_of(const Sample& sample) noexcept {
  const std::string_view text = sample.label("xid");
  unsigned code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(code) : std::nullopt;
}

// Of two codes at the same time, the higher, as in the rule pack.
std::vector<Value> last_xid(const Row& row, const Picture& picture, std::string_view uuid) {
  std::pair<double, unsigned> last{0, 0};
  for (const Sample& sample : picture.of(row.family->name, uuid)) {
    const std::optional<unsigned> code = code_of(sample);
    if (code && sample.value() > 0) last = std::max(last, {sample.value(), *code});
  }
  const bool is_known = last.first > 0 || !picture.of(catalog::xid_errors.name, uuid).empty();
  return is_known ? std::vector<Value>{{"", static_cast<double>(last.second)}} : std::vector<Value>();
}

std::vector<Value> presence(const Row& row, const Picture& picture, std::string_view uuid) {
  const Samples& samples = picture.of(row.family->name, uuid);
  std::vector<Value> values = sum(row, samples);
  if (values.empty() && !samples.empty()) values.push_back({"", 0});
  return values;
}

/// Empty if the card does not report it.
std::vector<Value> values_of(const Row& row, const Picture& picture, std::string_view uuid) {
  switch (row.form) {
    case Form::sum:
      return sum(row, picture.of(row.family->name, uuid));
    case Form::divided:
      return divided(row, picture, uuid);
    case Form::graphics:
      return graphics(row, picture, uuid);
    case Form::last_xid:
      return last_xid(row, picture, uuid);
    case Form::presence:
      return presence(row, picture, uuid);
  }
  return {};
}

/// The labels of a card's series. Those of a partition are between the two parts, as in dcgm-exporter.
struct Card {
  std::string uuid;
  std::string first;  ///< `gpu="0",UUID=...,modelName=...`
  std::string last;   ///< `Hostname=...`
  std::string pod;  ///< `container=...`; not on an instance's series, since the pod may have another instance
};

void add(std::string& to, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (!to.empty()) to += ',';
  to.append(name).append("=\"").append(EscapedText::label_value(value).view()).append("\"");
}

/// dcgm-exporter's domain has 8 digits, and its letters are capitals.
std::string bus_id(std::string_view address) {
  if (address.empty()) return {};
  std::string id("0000");
  for (const char c : address) id += c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  return id;
}

/// The pods on the card by a family of workloads on cards.
std::vector<const Sample*> pods_on(const Picture& picture, std::string_view uuid, std::string_view family) {
  std::vector<const Sample*> pods;
  for (const Sample& on_card : picture.of(family)) {
    if (on_card.label("uuid") != uuid) continue;
    for (const Sample& info : picture.of(catalog::workload_info.name)) {
      const bool is_its = info.label("kind") == on_card.label("kind") &&
                          info.label("workload") == on_card.label("workload") &&
                          !info.label("k8s_pod").empty();
      if (is_its && std::ranges::find(pods, &info) == pods.end()) pods.push_back(&info);
    }
  }
  return pods;
}

/// The only pod that was given the card, as in dcgm-exporter, also if it is idle. If no source names
/// allocations, the only one that has a share of it. Null if there is none or several.
const Sample* pod_of(const Picture& picture, std::string_view uuid) {
  std::vector<const Sample*> pods = pods_on(picture, uuid, catalog::allocation_info.name);
  if (pods.empty()) pods = pods_on(picture, uuid, catalog::workload_share.name);
  return pods.size() == 1 ? pods.front() : nullptr;
}

Card card_of(const Sample& info, const Picture& picture, Version version, std::string_view host) {
  const bool is_old = version == Version::v4_8;
  const std::string index(info.label("vendor_index"));
  Card card{std::string(info.label("uuid")), {}, {}, {}};
  add(card.first, "gpu", index);
  add(card.first, "UUID", card.uuid);
  add(card.first, "pci_bus_id", bus_id(info.label("pci_address")));
  add(card.first, "device", index.empty() ? "" : "nvidia" + index);
  add(card.first, "modelName", info.label("model"));
  add(card.last, is_old ? "Hostname" : "hostname", host);
  add(card.last, is_old ? "DCGM_FI_DRIVER_VERSION" : "DCGM_FI_SYSTEM_DRIVER_VERSION",
      info.label("driver_version"));
  if (const Sample* pod = pod_of(picture, card.uuid)) {
    add(card.pod, "container", pod->label("k8s_container"));
    add(card.pod, "namespace", pod->label("k8s_namespace"));
    add(card.pod, "pod", pod->label("k8s_pod"));
  }
  return card;
}

std::vector<Card> cards_of(const Picture& picture, Version version, std::string_view host) {
  std::vector<Card> cards;
  for (const Sample& info : picture.of(catalog::info.name)) {
    if (info.label("vendor") == "nvidia") cards.push_back(card_of(info, picture, version, host));
  }
  return cards;
}

void append_header(const Row& row, Version version, Format format, std::string& to) {
  const std::string_view name = row.name(version), unit = row.unit(version).name;
  const bool is_unknown = format == Format::openmetrics && row.type == MetricType::counter;
  const std::string help = "# HELP " + std::string(name) + " " + std::string(row.help) +
                           (unit.empty() ? "." : " (in " + std::string(unit) + ").") + "\n";
  const std::string type =
      "# TYPE " + std::string(name) + " " + std::string(is_unknown ? "unknown" : to_string(row.type)) + "\n";
  to += format == Format::openmetrics ? type + help : help + type;
}

std::string labels_of(const Card& card, const Value& value) {
  std::string labels = card.first;
  const std::size_t colon = value.partition.find(':');
  if (colon != std::string::npos) {
    add(labels, "GPU_I_PROFILE", std::string_view(value.partition).substr(0, colon));
    add(labels, "GPU_I_ID", std::string_view(value.partition).substr(colon + 1));
  }
  for (const std::string& more : {card.last, colon == std::string::npos ? card.pod : std::string()}) {
    if (!more.empty()) labels.append(",").append(more);
  }
  return labels;
}

void append_line(std::string_view name, const Card& card, const Value& value, const Unit& unit,
                 std::string& to) {
  char number[kValueTextMax];
  const char* end = write_value(number, value.value * unit.times / unit.by);
  to.append(name).append("{").append(labels_of(card, value)).append("} ");
  to.append(static_cast<const char*>(number), end).append("\n");
}

}  // namespace

Rendered render(const Store& store, Version version, Format format, const Filter& filter,
                const std::string& host) {
  const Picture picture(store, filter);
  Rendered page{.text = {}, .generation = picture.generation()};
  const std::vector<Card> cards = cards_of(picture, version, host);
  for (const Row& row : rows()) {
    if (row.name(version).empty()) continue;
    std::string lines;
    for (const Card& card : cards) {
      for (const Value& value : values_of(row, picture, card.uuid)) {
        append_line(row.name(version), card, value, row.unit(version), lines);
      }
    }
    if (!lines.empty()) append_header(row, version, format, page.text);
    page.text += lines;
  }
  if (format == Format::openmetrics) page.text += kOpenMetricsEnd;
  return page;
}

}  // namespace gpumeter::dcgm
