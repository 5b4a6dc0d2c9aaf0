#include "collectors/profiles/ledger.hpp"

#include <algorithm>

#include "base/duration.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::profiles {
namespace {

constexpr Nanoseconds kDay = std::chrono::hours(24);

}  // namespace

void Ledger::count(const RunName& run, const std::string& trigger, Status status, Nanoseconds now,
                   Nanoseconds unix) {
  Page& entry = page(run, now);
  ++entry.counts[{trigger, status}];
  if (status == Status::done) entry.last[trigger] = to_seconds(unix);
}

Ledger::Page& Ledger::page(const RunName& run, Nanoseconds now) {
  if (!pages_.contains(run) && pages_.size() >= kMostRuns) {
    pages_.erase(std::ranges::min_element(pages_, {}, [](const auto& entry) { return entry.second.used; }));
  }
  Page& entry = pages_[run];
  entry.used = now;
  return entry;
}

void Ledger::write(SeriesList& out) const {
  for (const auto& [run, entry] : pages_) {
    const Labels labels{{"run", run.run}, {"user", run.user}};
    for (const auto& [key, count] : entry.counts) {
      out.add(catalog::ml_profiles,
              labels.with({{"trigger", key.first}, {"status", std::string(kStatusNames.of(key.second))}}),
              static_cast<double>(count));
    }
    for (const auto& [trigger, unix] : entry.last) {
      out.add(catalog::ml_profile_last_timestamp, labels.with({{"trigger", trigger}}), unix);
    }
  }
}

void Ledger::tick(Nanoseconds now) {
  std::erase_if(pages_, [&](const auto& entry) { return now - entry.second.used >= kDay; });
}

}  // namespace gpumeter::profiles
