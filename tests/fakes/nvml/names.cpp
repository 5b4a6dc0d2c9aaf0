#include "tests/fakes/nvml/names.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <stdexcept>

#include "tests/fakes/nvml/name_table.hpp"

namespace gpumeter::fake_nvml {
namespace {

using nvidia::nvml::ValueType;

bool only_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<unsigned> matched(const NumberedName& row, std::string_view name) {
  const std::size_t hash = row.pattern.find('#');
  if (hash == std::string_view::npos) return row.pattern == name ? std::optional(row.id) : std::nullopt;
  const std::string_view before = row.pattern.substr(0, hash), after = row.pattern.substr(hash + 1);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) {
    return std::nullopt;
  }
  const std::string number(name.substr(before.size(), name.size() - before.size() - after.size()));
  if (!only_digits(number) || number.size() > 3) return std::nullopt;
  const auto n = static_cast<unsigned>(std::stoul(number));
  if (n < row.first || n > row.last) return std::nullopt;
  return row.id + (n - row.first) * row.step;
}

unsigned id_of(std::string_view prefix, std::span<const NumberedName> table, const std::string& name) {
  if (only_digits(name)) return static_cast<unsigned>(std::stoul(name));
  if (name.starts_with(prefix)) {
    for (const auto& row : table) {
      if (auto id = matched(row, std::string_view(name).substr(prefix.size()))) return *id;
    }
  }
  throw std::runtime_error("NVML has no " + name);
}

// Counters of 64 bits: ECC, NVLink errors and bytes, durations in ns, energy, PCIe bytes, NVLink5 counters.
constexpr std::array<std::pair<unsigned, unsigned>, 10> kLong = {{{3, 28},
                                                                  {32, 81},
                                                                  {83, 83},
                                                                  {96, 131},
                                                                  {138, 141},
                                                                  {148, 163},
                                                                  {191, 191},
                                                                  {197, 198},
                                                                  {201, 250},
                                                                  {269, 271}}};

}  // namespace

unsigned field_id(const std::string& name) {
  return id_of("NVML_FI_DEV_", {kFieldNames, kFieldNameCount}, name);
}

unsigned gpm_id(const std::string& name) {
  return id_of("NVML_GPM_METRIC_", {kGpmNames, kGpmNameCount}, name);
}

ValueType type_of_field(unsigned id) {
  if (id >= 193 && id <= 196) return ValueType::sint;  // offsets of T.Limit, below 0
  if (id == 230) return ValueType::uint;               // the recovery action, among the counters
  const bool is_long = std::any_of(
      kLong.begin(), kLong.end(), [&](const auto& range) { return id >= range.first && id <= range.second; });
  return is_long ? ValueType::ulonglong : ValueType::uint;
}

}  // namespace gpumeter::fake_nvml
