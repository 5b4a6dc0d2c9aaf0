#include "daemon/cli/survey.hpp"

#include <algorithm>
#include <utility>

#include "daemon/fleet/device_order.hpp"

namespace gpumeter {
namespace {

Result<Discovery> discover(const config::Config& config, const CollectorEntry& entry, const Clock& clock,
                           Survey& survey) {
  Result<std::unique_ptr<Collector>> opened = entry.open(context_of(config, entry, clock));
  if (!opened) return opened.error();
  survey.collectors.push_back(*std::move(opened));
  return survey.collectors.back()->discover();
}

}  // namespace

Survey survey(const config::Config& config, const Clock& clock) {
  Survey survey;
  std::vector<Find> finds;
  std::map<std::string, Collector*> owner;
  for (const CollectorEntry* entry : enabled_collectors(config)) {
    const std::string name(entry->name);
    const Result<Discovery> found = discover(config, *entry, clock, survey);
    survey.working[name] = static_cast<bool>(found);
    if (!found) {
      survey.notes.push_back(found.error().with(name).message());
      continue;
    }
    owner[name] = survey.collectors.back().get();
    for (const std::string& note : found->notes) survey.notes.push_back(name + ": " + note);
    for (const DeviceInfo& info : found->devices) finds.push_back({name, info});
  }
  sort_by_bus(finds);
  DeviceDirectory directory(config.paths.state);
  if (const Result<Done> loaded = directory.load(); !loaded) survey.notes.push_back(loaded.error().message());
  const std::vector<std::string> bus = bus_of(config).addresses;
  unsigned ordinal = 0;
  for (const Find& find : finds) {
    const unsigned preferred = preferred_index(bus, find.info, ordinal++);
    survey.devices.push_back(
        {directory.admit(find.collector, find.info, preferred, clock.realtime()), owner.at(find.collector)});
  }
  std::sort(survey.devices.begin(), survey.devices.end(),
            [](const auto& a, const auto& b) { return a.known.index < b.known.index; });
  return survey;
}

}  // namespace gpumeter
