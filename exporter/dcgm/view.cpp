#include "exporter/dcgm/view.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::dcgm {
namespace {

/// How a card's value follows from the series of a family.
enum class Form : std::uint8_t {
  sum,       ///< the sum of the matching series
  divided,   ///< on a divided card one value for each instance, from gpu_partition_*; otherwise the sum
  graphics,  ///< as `divided`, of the graphics engine; before Hopper, of the whole card
  last_xid,  ///< the code with the newest time stamp; 0 if the card had no event
  presence,  ///< 1 if a matching series is 1, 0 if the family has other series of the card
};

/// Conversion from a base unit: value * times / by.
struct Unit {
  std::string_view name;  ///< in the HELP text; empty if there is none
  double times = 1;
  double by = 1;
};

/// One metric of dcgm-exporter. packaging/mixin/dcgm/rows.libsonnet has the same rows for the rule packs;
/// a test compares them. Metrics that are rates are in the rule packs only.
struct Row {
  std::string_view old_name;  ///< up to 4.8
  std::string_view new_name;  ///< since 4.9; empty if its spelling is unknown
  std::string_view help;      ///< a noun phrase without full stop
  MetricType type;
  const MetricDescriptor* family;
  std::string_view label;  ///< the series with this label and value; empty: all
  std::string_view value;
  Form form;
  Unit old_unit;
  Unit new_unit;

  std::string_view name(Version version) const noexcept {
    return version == Version::v4_8 ? old_name : new_name;
  }
  const Unit& unit(Version version) const noexcept { return version == Version::v4_8 ? old_unit : new_unit; }
};

constexpr auto gauge = MetricType::gauge;
constexpr auto counter = MetricType::counter;
constexpr Unit kNone{""};
constexpr Unit kMegahertz{"MHz", 1, 1e6}, kHertz{"Hz"};
constexpr Unit kMillijoules{"mJ", 1e3}, kJoules{"J"};
constexpr Unit kPercent{"%", 100}, kRatio{"0 to 1"};
constexpr Unit kMebibytes{"MiB", 1, 0x1p20}, kBytes{"bytes"};
constexpr Unit kNanoseconds{"ns", 1e9}, kSeconds{"s"};
constexpr Unit kWatts{"W"};
constexpr Unit kCelsius{"C"};

// clang-format off
constexpr Row kRows[] = {
    {"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", "SM clock frequency", gauge,
     &catalog::clock, "clock", "sm", Form::sum, kMegahertz, kHertz},
    {"DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "Memory clock frequency", gauge,
     &catalog::clock, "clock", "memory", Form::sum, kMegahertz, kHertz},
    {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "GPU temperature", gauge,
     &catalog::temperature, "sensor", "core", Form::sum, kCelsius, kCelsius},
    {"DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "Memory temperature", gauge,
     &catalog::temperature, "sensor", "memory", Form::sum, kCelsius, kCelsius},
    {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", "Power draw", gauge,
     &catalog::power, "", "", Form::sum, kWatts, kWatts},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "Total energy consumption", counter,
     &catalog::energy_joules, "", "", Form::sum, kMillijoules, kJoules},
    {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "GPU utilization", gauge,
     &catalog::utilization, "", "", Form::sum, kPercent, kRatio},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", "Memory utilization", gauge,
     &catalog::memory_controller_utilization, "", "", Form::sum, kPercent, kRatio},
    {"DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_ENC_UTIL_RATIO", "Encoder utilization", gauge,
     &catalog::engine_utilization, "engine", "encode", Form::sum, kPercent, kRatio},
    {"DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL_RATIO", "Decoder utilization", gauge,
     &catalog::engine_utilization, "engine", "decode", Form::sum, kPercent, kRatio},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "Share of time in which the graphics engine is active", gauge,
     &catalog::engine_utilization, "engine", "graphics", Form::graphics, kNone, kNone},
    {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO", "Share of SMs with resident work", gauge,
     &catalog::compute_active, "", "", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", "Resident warps as a share of the maximum", gauge,
     &catalog::compute_occupancy, "", "", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO", "Share of cycles in which the tensor pipe is active", gauge,
     &catalog::pipe_active, "pipe", "tensor", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO", "Share of cycles in which the fp64 pipe is active", gauge,
     &catalog::pipe_active, "pipe", "fp64", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO", "Share of cycles in which the fp32 pipe is active", gauge,
     &catalog::pipe_active, "pipe", "fp32", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO", "Share of cycles in which the fp16 pipe is active", gauge,
     &catalog::pipe_active, "pipe", "fp16", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO", "Share of cycles in which the memory interface is active", gauge,
     &catalog::memory_bandwidth_utilization, "", "", Form::divided, kNone, kNone},
    {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", "Used framebuffer memory", gauge,
     &catalog::memory_used, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES", "Free framebuffer memory", gauge,
     &catalog::memory_free, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_RESERVED_BYTES", "Reserved framebuffer memory", gauge,
     &catalog::memory_reserved, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_CAPACITY_BYTES", "Total framebuffer memory", gauge,
     &catalog::memory_size, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "PCIe retries", counter,
     &catalog::pcie_replays, "", "", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", "NVLink flow-control CRC errors", counter,
     &catalog::interconnect_errors, "error", "crc_flit", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL", "NVLink data CRC errors", counter,
     &catalog::interconnect_errors, "error", "crc_data", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL", "NVLink retries", counter,
     &catalog::interconnect_errors, "error", "replay", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL", "NVLink recovery errors", counter,
     &catalog::interconnect_errors, "error", "recovery", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", "Throttling due to power constraints", counter,
     &catalog::throttle_seconds, "cause", "power", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_THERMAL_VIOLATION", "", "Throttling due to thermal constraints", counter,
     &catalog::throttle_seconds, "cause", "thermal", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "", "Throttling due to sync boost", counter,
     &catalog::throttle_seconds, "cause", "sync", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "", "Throttling due to the board limit", counter,
     &catalog::throttle_reason_seconds, "reason", "board_limit", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_RELIABILITY_VIOLATION", "", "Throttling due to reliability constraints", counter,
     &catalog::throttle_reason_seconds, "reason", "reliability", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "Code of the last XID error", gauge,
     &catalog::xid_last_timestamp, "", "", Form::last_xid, kNone, kNone},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Single-bit volatile ECC errors", counter,
     &catalog::memory_errors, "severity", "corrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "Single-bit persistent ECC errors", counter,
     &catalog::memory_lifetime_errors, "severity", "corrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Double-bit volatile ECC errors", counter,
     &catalog::memory_errors, "severity", "uncorrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "Double-bit persistent ECC errors", counter,
     &catalog::memory_lifetime_errors, "severity", "uncorrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL", "Pages retired because of single-bit errors", counter,
     &catalog::retired_pages, "cause", "single_bit", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_RETIRED_DBE", "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL", "Pages retired because of double-bit errors", counter,
     &catalog::retired_pages, "cause", "double_bit", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_DEV_PAGE_RETIRED_PENDING", "Whether a page is pending retirement", counter,
     &catalog::retired_pages_pending, "", "", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", "Rows remapped because of correctable errors", counter,
     &catalog::remapped_rows, "cause", "corrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "Rows remapped because of uncorrectable errors", counter,
     &catalog::remapped_rows, "cause", "uncorrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED", "Whether remapping of rows has failed", gauge,
     &catalog::row_remap_failed, "", "", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "vGPU license status", gauge,
     &catalog::license_state, "state", "licensed", Form::presence, kNone, kNone},
};
// clang-format on

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
  for (const Row& row : kRows) {
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
using Values = std::vector<Value>;

bool matches(const Row& row, const Sample& sample) {
  return row.label.empty() || sample.label(row.label) == row.value;
}

Values sum(const Row& row, const Samples& samples) {
  std::optional<double> total;
  for (const Sample& sample : samples) {
    if (matches(row, sample)) total = total.value_or(0) + sample.value();
  }
  return total ? Values{{"", *total}} : Values();
}

// As in the rule pack, a series with any label means that the card is divided.
Values divided(const Row& row, const Picture& picture, std::string_view uuid) {
  const bool is_graphics = row.form == Form::graphics;
  const std::string_view family = is_graphics ? catalog::utilization.name : row.family->name;
  Values values;
  const Samples& partitions = picture.of(partition_family(family), uuid);
  for (const Sample& sample : partitions) {
    if (is_graphics || matches(row, sample)) {
      values.push_back({std::string(sample.label("partition")), sample.value()});
    }
  }
  if (!partitions.empty()) return values;
  values = sum(row, picture.of(row.family->name, uuid));
  if (!is_graphics || !values.empty()) return values;
  for (const Sample& sample : picture.of(family, uuid)) values.push_back({"", sample.value()});
  return values;
}

// Of two codes at the same time, the higher, as in the rule pack.
Values last_xid(const Samples& samples, bool are_xids_read) {
  std::pair<double, unsigned> last{0, 0};
  for (const Sample& sample : samples) {
    const std::optional<unsigned> code = parse_number<unsigned>(sample.label("xid"));
    if (code && sample.value() > 0) last = std::max(last, {sample.value(), *code});
  }
  return last.first > 0 || are_xids_read ? Values{{"", static_cast<double>(last.second)}} : Values();
}

/// Empty if the card does not report it.
Values values_of(const Row& row, const Picture& picture, std::string_view uuid) {
  const Samples& samples = picture.of(row.family->name, uuid);
  switch (row.form) {
    case Form::sum:
      return sum(row, samples);
    case Form::divided:
    case Form::graphics:
      return divided(row, picture, uuid);
    case Form::last_xid:
      return last_xid(samples, !picture.of(catalog::xid_errors.name, uuid).empty());
    case Form::presence: {
      Values values = sum(row, samples);
      if (values.empty() && !samples.empty()) values.push_back({"", 0});
      return values;
    }
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
  to.append(name).append("=\"").append(escaped_label(value)).append("\"");
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
  for (const Row& row : kRows) {
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
