#include "exporter/store/family_table.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "exporter/store/syntax.hpp"

namespace gpumeter {
namespace {

std::set<std::string_view> family_names(const LineBlock& block) {
  std::set<std::string_view> names;
  for (std::size_t slot = 0; slot < block.size(); ++slot) names.insert(block.family(slot).name);
  return names;
}

void append_line(std::string_view prefix, double value, std::string& out) {
  char number[kValueTextMax + 1];
  char* end = write_value(number, value);
  *end++ = '\n';
  out.append(prefix).append(number, end);
}

}  // namespace

void FamilyTable::add(const LineBlock& block) {
  for (std::size_t slot = 0; slot < block.size(); ++slot) {
    const MetricDescriptor& descriptor = block.family(slot);
    const auto [found, is_new] = families_.try_emplace(descriptor.name);
    Family& family = found->second;
    if (is_new) {
      family.headers = {family_header(descriptor, Format::text),
                        family_header(descriptor, Format::openmetrics)};
    }
    family.lines.push_back({block.prefix(slot), &block, slot, false});
  }
  for (const std::string_view name : family_names(block)) arrange(families_.at(name));
}

void FamilyTable::remove(const LineBlock& block) {
  for (const std::string_view name : family_names(block)) {
    const auto found = families_.find(name);
    Family& family = found->second;
    std::erase_if(family.lines, [&](const Line& line) { return line.block == &block; });
    if (family.lines.empty()) {
      families_.erase(found);
    } else {
      arrange(family);
    }
  }
}

void FamilyTable::arrange(Family& family) {
  std::ranges::sort(family.lines, {}, [](const Line& line) {
    return std::tuple(line.block->order(line.slot), line.block->age(), line.slot);
  });
  shadow_duplicates(family);
}

/// Two lines of the same series would cost the whole scrape. The youngest block shows it, and within a
/// block its first slot.
void FamilyTable::shadow_duplicates(Family& family) {
  std::unordered_map<std::string_view, Line*> shown;
  shown.reserve(family.lines.size());
  for (Line& line : family.lines) {
    line.shadowed = false;
    const auto [found, is_first] = shown.try_emplace(line.prefix, &line);
    if (is_first) continue;
    Line*& winner = found->second;
    Line* loser = &line;
    if (line.block->age() > winner->block->age()) std::swap(winner, loser);
    loser->shadowed = true;
  }
}

void FamilyTable::render(Format format, std::string& out) const {
  for (const auto& [name, family] : families_) render(family, format, out);
}

void FamilyTable::render(const Family& family, Format format, std::string& out) {
  bool mentioned = false;
  for (const Line& line : family.lines) {
    const LineBlock& block = *line.block;
    if (!block.visible || !block.selected || line.shadowed) continue;
    if (block.frame.statuses()[line.slot] != ReadStatus::ok) continue;
    if (!mentioned) out += family.headers[static_cast<std::size_t>(format)];
    mentioned = true;
    append_line(line.prefix, block.frame.values()[line.slot], out);
  }
}

}  // namespace gpumeter
