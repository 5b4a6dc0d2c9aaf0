#include "programs/top/pages/gpu_list.hpp"

#include <algorithm>

#include "programs/top/layout/format.hpp"

namespace gpumeter::top {
namespace {

Number memory_ratio(const Gpu& gpu) {
  if (!gpu.memory_used || !gpu.memory_size || *gpu.memory_size <= 0) return std::nullopt;
  return *gpu.memory_used / *gpu.memory_size;
}

/// The value by which the GPUs are ordered, the highest first.
Number value_of(const Gpu& gpu, Sort sort) {
  switch (sort) {
    case Sort::state:
      return -static_cast<double>(gpu.state);
    case Sort::utilization:
      return gpu.utilization;
    case Sort::power:
      return gpu.power;
    case Sort::memory:
      return memory_ratio(gpu);
    case Sort::temperature:
      return gpu.temperature;
    case Sort::gpu:
      break;
  }
  return 0;  // all are equal: the order by index is kept
}

/// The model without the vendor's name, which says nothing in a narrow column.
std::string short_model(const std::string& model) {
  for (const std::string_view vendor : {"NVIDIA ", "AMD ", "Intel "}) {
    if (model.starts_with(vendor)) return model.substr(vendor.size());
  }
  return model;
}

Style style_of_throttle(const Gpu& gpu) {
  const auto holds = [&](std::string_view cause) {
    return std::ranges::any_of(gpu.throttles,
                               [&](const Reading& it) { return it.name == cause && it.of > 0; });
  };
  return holds("thermal") || holds("hardware") ? Style::bad : Style::warning;
}

const std::vector<Column> kColumns = {
    {"GPU", 3, 5, 100, true},     {"STATE", 8, 8, 99},      {"MODEL", 8, 24, 55},
    {"UTIL", 4, 4, 98, true},     {"", 5, 24, 40},          {"POWER W", 7, 9, 90, true},
    {"MEM GiB", 9, 11, 85, true}, {"TEMP", 4, 4, 80, true}, {"MARGIN", 6, 6, 50, true},
    {"THROTTLE", 8, 16, 65},      {"HELD BY", 8, 48, 60}};
constexpr std::size_t kModelColumn = 2;

std::vector<Cell> cells_of(const Gpu& gpu) {
  const std::string throttle = throttle_text(gpu);
  const Cell utilization_bar = gpu.utilization ? Cell{"", Style::good, gpu.utilization} : Cell{};
  return {{gpu.index},
          {std::string(state_word(gpu)), style_of(gpu.state)},
          {short_model(gpu.model)},
          {percent_text(gpu.utilization)},
          utilization_bar,
          {pair_text(gpu.power, gpu.power_limit)},
          {pair_text(gpu.memory_used, gpu.memory_size, 1, kGiB)},
          {number_text(gpu.temperature)},
          {number_text(gpu.margin), style_of_margin(gpu.margin)},
          {throttle, throttle == kAbsent ? Style::plain : style_of_throttle(gpu)},
          {holder_text(gpu)}};
}

}  // namespace

std::vector<const Gpu*> sorted(const std::vector<Gpu>& gpus, Sort sort, bool is_reversed) {
  std::vector<const Gpu*> order;
  for (const Gpu& gpu : gpus) order.push_back(&gpu);
  if (is_reversed) std::ranges::reverse(order);
  std::ranges::stable_sort(order, [&](const Gpu* a, const Gpu* b) {
    const Number left = value_of(*a, sort);
    const Number right = value_of(*b, sort);
    if (!left || !right) return left.has_value() && !right.has_value();
    return is_reversed ? *left < *right : *left > *right;
  });
  return order;
}

Table gpu_table(const std::vector<const Gpu*>& gpus, const std::string& selected_uuid, bool with_model) {
  Table table{kColumns, {}};
  for (const Gpu* gpu : gpus) table.rows.push_back({cells_of(*gpu), gpu->uuid == selected_uuid});
  if (with_model) return table;
  table.columns.erase(table.columns.begin() + kModelColumn);
  for (Row& row : table.rows) row.cells.erase(row.cells.begin() + kModelColumn);
  return table;
}

std::string_view state_word(const Gpu& gpu) {
  const bool is_well = gpu.state == State::ok || gpu.state == State::up;
  return is_well && gpu.is_suspended ? "asleep" : kStateNames.of(gpu.state);
}

Style style_of(State state) {
  switch (state) {
    case State::failed:
    case State::down:
      return Style::bad;
    case State::degraded:
      return Style::warning;
    case State::unknown:
      return Style::dim;
    default:
      return Style::plain;
  }
}

Style style_of_margin(Number margin) {
  if (!margin) return Style::plain;
  return *margin <= 3 ? Style::bad : *margin <= 10 ? Style::warning : Style::plain;
}

std::string throttle_text(const Gpu& gpu) {
  std::string text;
  for (const Reading& cause : gpu.throttles) {
    if (cause.of.value_or(0) > 0) text += (text.empty() ? "" : ",") + cause.name;
  }
  return text.empty() ? std::string(kAbsent) : text;
}

std::string share_name(const Share& share) {
  return share.kind == "other" ? share.name : share.kind + " " + share.name;
}

std::string holder_text(const Gpu& gpu) {
  if (gpu.shares.empty()) return std::string(kAbsent);
  const Share& first = gpu.shares.front();
  const std::string user = first.user.empty() ? "" : " (" + first.user + ")";
  const std::string others = gpu.shares.size() > 1 ? " +" + std::to_string(gpu.shares.size() - 1) : "";
  return share_name(first) + user + others;
}

bool have_one_model(const std::vector<Gpu>& gpus) {
  return std::ranges::all_of(gpus, [&](const Gpu& gpu) { return gpu.model == gpus.front().model; });
}

}  // namespace gpumeter::top
