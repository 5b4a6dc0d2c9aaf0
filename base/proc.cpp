#include "base/proc.hpp"

#include "base/text.hpp"

namespace gpumeter::proc {
namespace {

enum Field { kState = 3, kThreads = 20, kStart = 22 };

// The kernel escapes newlines in the name on the line before (proc(5)), so a process cannot forge this line.
constexpr std::string_view kUid = "\nUid:\t";

}  // namespace

std::string path(const std::string& procfs, int pid, std::string_view name) {
  return procfs + "/" + std::to_string(pid) + "/" + std::string(name);
}

std::string_view stat_field(std::string_view stat, int number) noexcept {
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos) return {};
  stat.remove_prefix(name_end + 2);
  stat = stat.substr(0, stat.find('\n'));
  for (int before = kState; before < number; ++before) take_until(stat, ' ');
  return take_until(stat, ' ');
}

std::optional<std::uint64_t> start_ticks(std::string_view stat) noexcept {
  return parse_number<std::uint64_t>(stat_field(stat, kStart));
}

bool is_alive(std::string_view stat) noexcept {
  const std::string_view state = stat_field(stat, kState);
  if (state.empty()) return false;
  const bool has_ended = std::string_view("ZXx").find(state) != std::string_view::npos;
  return !has_ended || parse_number<int>(stat_field(stat, kThreads)).value_or(0) > 1;
}

std::optional<std::array<std::uint32_t, 4>> uids(std::string_view status) noexcept {
  const std::size_t line = status.find(kUid);
  if (line == std::string_view::npos) return std::nullopt;
  status.remove_prefix(line + kUid.size());
  std::string_view numbers = take_until(status, '\n');
  std::array<std::uint32_t, 4> found{};
  for (std::uint32_t& uid : found) {
    const auto number = parse_number<std::uint32_t>(take_until(numbers, '\t'));
    if (!number) return std::nullopt;
    uid = *number;
  }
  return found;
}

}  // namespace gpumeter::proc
