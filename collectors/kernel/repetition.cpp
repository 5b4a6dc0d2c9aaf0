#include "collectors/kernel/repetition.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

namespace gpumeter::kernel {
namespace {

constexpr Nanoseconds kWithin = std::chrono::hours(24);
// A machine has at most 16 GPUs with about 80 TPCs each. Without room, new places are not judged.
constexpr std::size_t kMostPlaces = 2048;

constexpr unsigned kGraphics = 13;
constexpr unsigned kPageFault = 31;
constexpr unsigned kNvlink = 74;  // of a link, at both of its ends

constexpr std::uint64_t bits(std::initializer_list<unsigned> numbers) {
  std::uint64_t all = 0;
  for (const unsigned number : numbers) all |= std::uint64_t{1} << number;
  return all;
}
// XID 74: bits of the registers 0 and 2 that ask for a look at the link if it has them twice.
constexpr std::uint64_t kRegister0 = bits({4, 5, 8, 9, 12, 16, 17, 24, 27, 28, 29});
constexpr std::uint64_t kRegister2 = bits({0, 1, 2, 6, 16, 17, 18, 19});

/// A place that an XID can come back to.
struct Rule {
  std::string part;   ///< "GPC 1 TPC 3"
  Nanoseconds burst;  ///< events with less between them are one
};

std::optional<Rule> rule_of(const events::Event& event, std::size_t gpus) {
  const auto& numbers = event.numbers;
  const std::size_t count = event.number_count;
  if (event.code == kGraphics && count >= 2) {
    std::string part = "GPC " + std::to_string(numbers[0]) + " TPC " + std::to_string(numbers[1]);
    if (event.gpu_instance) part += " of GPU instance " + std::to_string(*event.gpu_instance);
    return Rule{std::move(part), std::chrono::seconds(15)};
  }
  // A machine with one GPU has no other that could show that a program is the cause.
  if (event.code == kPageFault && gpus > 1) return Rule{"this GPU alone", std::chrono::minutes(3)};
  const bool is_of_link =
      (count > 0 && (numbers[0] & kRegister0) != 0) || (count > 2 && (numbers[2] & kRegister2) != 0);
  if (event.code == kNvlink && event.link && is_of_link)
    return Rule{"link " + std::to_string(*event.link), std::chrono::seconds(15)};
  return std::nullopt;
}

}  // namespace

void Repetition::take(const events::Event& event, Nanoseconds time, std::size_t gpus, bool is_old) {
  if (event.kind != events::Kind::xid) return;
  const std::optional<Rule> rule = rule_of(event, gpus);
  if (!rule) return;
  const Place place(*event.code, event.pci, rule->part);
  if (last_.size() >= kMostPlaces && !last_.contains(place)) {
    std::erase_if(last_, [time](const auto& each) { return time - each.second > kWithin; });
    if (last_.size() >= kMostPlaces) return;
  }
  const auto [last, is_new] = last_.try_emplace(place, time);
  const Nanoseconds before = std::exchange(last->second, std::max(last->second, time));
  if (is_new || is_old || time - before <= rule->burst || time - before > kWithin) return;
  judge_.try_emplace(place, time + rule->burst);
}

std::vector<Repetition::Found> Repetition::found(Nanoseconds now) {
  std::vector<Found> found;
  for (auto it = judge_.begin(); it != judge_.end();) {
    const auto& [place, end] = *it;
    if (now <= end) {
      ++it;
      continue;
    }
    const auto& [code, address, part] = place;
    if (code == kNvlink || !is_elsewhere(place, now))
      found.push_back({address, code, "XID " + std::to_string(code) + " twice within 24 h on " + part});
    it = judge_.erase(it);
  }
  return found;
}

bool Repetition::is_elsewhere(const Place& place, Nanoseconds now) const {
  return std::ranges::any_of(last_, [&](const auto& each) {
    return std::get<0>(each.first) == std::get<0>(place) && each.first != place &&
           now - each.second <= kWithin;
  });
}

}  // namespace gpumeter::kernel
