#include "exporter/dcgm/values.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "collectors/api/catalog.hpp"

namespace gpumeter::dcgm {
namespace {

using Samples = Picture::Samples;

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

}  // namespace

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

}  // namespace gpumeter::dcgm
