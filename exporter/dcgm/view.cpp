#include "exporter/dcgm/view.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "exporter/dcgm/picture.hpp"
#include "exporter/dcgm/values.hpp"
#include "exporter/text/syntax.hpp"

namespace gpumeter::dcgm {
namespace {

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
