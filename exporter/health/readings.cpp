#include "exporter/health/readings.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "collectors/api/self_catalog.hpp"

namespace gpumeter::health {

namespace {

constexpr auto kNoDevice = static_cast<std::uint32_t>(-1);

std::string_view value_of(const std::vector<Labels::Pair>& pairs, std::string_view name) {
  for (const auto& [label, value] : pairs) {
    if (label == name) return value;
  }
  return {};
}

bool selects(const LabelSet& wanted, const std::vector<Labels::Pair>& pairs) {
  return std::ranges::all_of(wanted.pairs, [&](const LabelSet::Pair& pair) {
    return pair.name.empty() || value_of(pairs, pair.name) == pair.value;
  });
}

/// Families that state whether a device is read. Their absence is news.
bool states_presence(const MetricDescriptor* family) noexcept {
  return family == &catalog::up || family == &catalog::suspended;
}

double combined(double a, double b, Reduce reduce) noexcept {
  if (std::isnan(a)) return b;
  if (reduce == Reduce::sum) return a + b;
  return reduce == Reduce::lowest ? std::min(a, b) : std::max(a, b);
}

}  // namespace

Readings::Readings(std::span<const Condition> conditions, std::span<const Reading> others) {
  const auto add = [this](const Reading& reading) {
    const auto is_it = [&](const Reading& known) { return known.is_same(reading); };
    if (reading.family == nullptr || std::ranges::any_of(columns_, is_it)) return;
    columns_of_[reading.family->name].push_back(static_cast<std::uint32_t>(columns_.size()));
    columns_.push_back(reading);
  };
  for (const Condition& condition : conditions) {
    for (const Term& term : condition.terms) {
      add(term.reading);
      add(term.of);
    }
  }
  for (const Reading& other : others) add(other);
  // Read in any case: the devices, their facts, and the machine's.
  for (const MetricDescriptor* family : {&catalog::up, &catalog::info}) add({family});
  for (const auto* family : {&self_catalog::collector_released, &self_catalog::devices_expected}) {
    columns_of_[family->name];
  }
}

std::size_t Readings::column(const Reading& reading) const {
  const auto is_it = [&](const Reading& known) { return known.is_same(reading); };
  return static_cast<std::size_t>(std::ranges::find_if(columns_, is_it) - columns_.begin());
}

void Readings::copy_from(const Store& store, Nanoseconds now) {
  store.walk([this](const Family& family) { copy(family); });
  const std::size_t known = devices_.size();
  for (Source& source : sources_) {
    if (source.is_new) match(source);
  }
  // A family that names a device by its number may have come before the device.
  for (Source& source : sources_) {
    if (devices_.size() > known && source.awaits_device) match(source);
  }
  values_.assign(devices_.size() * columns_.size(), kAbsent);
  released_.clear();
  expected_.clear();
  find_read_devices(now);
  for (Source& source : sources_) {
    if (!states_presence(source.family)) keep_last_values(source, now);
    reduce(source);
    match_machine(source);
  }
}

void Readings::find_read_devices(Nanoseconds now) {
  read_at_.resize(devices_.size());
  const auto set = [this](const MetricDescriptor& family, std::optional<Nanoseconds> at) {
    const auto source = std::ranges::find(sources_, &family, &Source::family);
    if (source == sources_.end()) return;
    for (std::size_t position = 0; position + 1 < source->first.size(); ++position) {
      const bool holds =
          source->values[position] > 0 && source->first[position] < source->first[position + 1];
      if (holds) read_at_[source->targets[source->first[position]].device] = at;
    }
  };
  set(catalog::up, now);
  set(catalog::suspended, std::nullopt);
}

void Readings::keep_last_values(Source& source, Nanoseconds now) {
  for (std::size_t position = 0; position + 1 < source.first.size(); ++position) {
    if (source.first[position] == source.first[position + 1]) continue;
    const std::uint32_t device = devices_[source.targets[source.first[position]].device].owner;
    double& value = source.values[position];
    Last& last = source.lasts[position];
    // Of a device that sleeps or is lost, an absent value is absent at once.
    const bool is_read = read_at_[device] && now - *read_at_[device] < kLost;
    if (!std::isnan(value) || !is_read || now - last.at > kKept) last = {value, now};
    value = last.value;
  }
}

void Readings::copy(const Family& family) {
  const auto wanted = columns_of_.find(family.descriptor().name);
  if (wanted == columns_of_.end()) return;
  if (sources_.size() <= family.id()) sources_.resize(family.id() + 1);
  Source& source = sources_[family.id()];
  if (source.version != family.version()) {
    source.family = &family.descriptor();
    source.version = family.version();
    source.is_new = true;
    source.labels.clear();
    family.for_each_listed([&](const Labels& labels, SeriesPart) { source.labels.push_back(labels); });
    source.collectors.assign(source.labels.size(), {});
  }
  source.values.assign(source.labels.size(), kAbsent);
  family.for_each([&](const Series& series) {
    source.values[series.position()] = series.value();
    if (source.is_new) source.collectors[series.position()] = series.collector();
  });
}

// The list has changed: each series keeps its last value. Both lists are in the same order, so the series
// after the last match is nearly always the next match.
void Readings::rearrange_last_values(Source& source) {
  const std::vector<Last> old = std::exchange(source.lasts, std::vector<Last>(source.labels.size()));
  std::size_t next = 0;
  for (std::size_t position = 0; position < source.labels.size(); ++position) {
    for (std::size_t step = 0; step < old.size(); ++step) {
      const std::size_t candidate = (next + step) % old.size();
      if (source.matched[candidate] != source.labels[position]) continue;
      source.lasts[position] = old[candidate];
      next = candidate + 1;
      break;
    }
  }
}

void Readings::match(Source& source) {
  source.is_new = source.awaits_device = false;
  rearrange_last_values(source);
  source.matched = source.labels;
  source.first.assign(1, 0);
  source.targets.clear();
  for (std::size_t position = 0; position < source.labels.size(); ++position) {
    const std::vector<Labels::Pair> pairs = source.labels[position].pairs();
    const std::uint32_t device = device_of(*source.family, source.labels[position], pairs);
    if (device != kNoDevice) add_targets(source, pairs, device);
    if (device == kNoDevice && !value_of(pairs, "gpu").empty()) source.awaits_device = true;
    source.first.push_back(static_cast<std::uint32_t>(source.targets.size()));
    if (device == kNoDevice || source.family != &catalog::up) continue;
    if (!source.collectors[position].empty()) devices_[device].collector = source.collectors[position];
  }
}

void Readings::add_targets(Source& source, const std::vector<Labels::Pair>& pairs, std::uint32_t device) {
  for (const std::uint32_t column : columns_of_[source.family->name]) {
    const Reading& reading = columns_[column];
    if (!selects(reading.labels, pairs)) continue;
    const double text = reading.text.empty() ? 0 : number_of(value_of(pairs, reading.text));
    source.targets.push_back({device, column, text});
  }
}

std::uint32_t Readings::device_of(const MetricDescriptor& family, const Labels& labels,
                                  const std::vector<Labels::Pair>& pairs) {
  const std::string_view gpu = value_of(pairs, "gpu");
  const std::string uuid(value_of(pairs, "uuid"));
  if (uuid.empty()) {  // the daemon's own series
    const auto found = std::ranges::find(devices_, gpu, &DeviceFacts::gpu);
    return gpu.empty() || found == devices_.end() ? kNoDevice
                                                  : static_cast<std::uint32_t>(found - devices_.begin());
  }
  const auto [known, is_new] = by_uuid_.try_emplace(uuid, static_cast<std::uint32_t>(devices_.size()));
  if (is_new) {
    devices_.emplace_back().uuid = uuid;
    devices_.back().owner = known->second;
  }
  DeviceFacts& facts = devices_[known->second];
  facts.gpu = gpu;
  const auto learn = [&](std::string& fact, const char* name) {
    if (const std::string_view value = value_of(pairs, name); !value.empty()) fact = value;
  };
  learn(facts.vendor, "vendor");
  learn(facts.model, "model");
  learn(facts.pci_address, "pci_address");
  learn(facts.driver, "driver_version");
  if (&family == &catalog::up) facts.labels = labels;
  return link_of(known->second, pairs);
}

std::uint32_t Readings::link_of(std::uint32_t device, const std::vector<Labels::Pair>& pairs) {
  const std::string number(value_of(pairs, "link"));
  if (number.empty()) return device;
  const std::string kind(value_of(pairs, "kind"));
  const std::string key = devices_[device].uuid + "/" + kind + "/" + number;
  const auto [known, is_new] = by_uuid_.try_emplace(key, static_cast<std::uint32_t>(devices_.size()));
  if (!is_new) return known->second;
  devices_[device].links.push_back(known->second);
  DeviceFacts& link = devices_.emplace_back();
  link.uuid = key;
  link.owner = device;
  link.link = (kind == "nvlink" ? "link " : kind + " link ") + number;
  return known->second;
}

void Readings::reduce(const Source& source) {
  for (std::size_t position = 0; position + 1 < source.first.size(); ++position) {
    if (std::isnan(source.values[position])) continue;
    for (std::uint32_t i = source.first[position]; i < source.first[position + 1]; ++i) {
      const Target& target = source.targets[i];
      const Reading& reading = columns_[target.column];
      double& value = values_[target.device * columns_.size() + target.column];
      value = combined(value, reading.text.empty() ? source.values[position] : target.text, reading.reduce);
    }
  }
}

void Readings::match_machine(const Source& source) {
  const bool is_expected = source.family == &self_catalog::devices_expected;
  if (!is_expected && source.family != &self_catalog::collector_released) return;
  for (std::size_t position = 0; position < source.values.size(); ++position) {
    const double value = source.values[position];
    const std::vector<Labels::Pair> pairs = source.labels[position].pairs();
    if (is_expected && !std::isnan(value)) expected_[std::string(value_of(pairs, "vendor"))] = value;
    if (!is_expected && value > 0) released_.insert(std::string(value_of(pairs, "collector")));
  }
}

double Readings::number_of(std::string_view text) {
  const auto known = texts_.find(text);
  if (known != texts_.end()) return known->second;
  return texts_.emplace(text, static_cast<double>(texts_.size())).first->second;
}

}  // namespace gpumeter::health
