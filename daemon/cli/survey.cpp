#include "daemon/cli/survey.hpp"

#include <algorithm>
#include <utility>

#include "collectors/builtin.hpp"
#include "daemon/fleet/index_keeper.hpp"

namespace gpumeter {
namespace {

Result<Discovery> discover(const CollectorEntry& entry, const CollectorContext& context, Survey& survey) {
  Result<std::unique_ptr<Collector>> opened = entry.open(context);
  if (!opened) return opened.error();
  survey.collectors.push_back(*std::move(opened));
  return survey.collectors.back()->discover();
}

}  // namespace

Survey survey(const config::Config& config, const Clock& clock, const std::shared_ptr<DrmUsers>& drm_users) {
  Survey survey;
  DeviceDirectory directory(config.of<Paths>().state);
  if (const Result<Done> loaded = directory.load(); !loaded) survey.notes.push_back(loaded.error().message());
  forget_simulated(directory, config);
  IndexKeeper indexes(std::move(directory), nullptr, clock);
  survey.bus = bus_of(config);
  indexes.order_by(survey.bus.addresses);
  for (const CollectorEntry& entry : builtin_collectors()) {
    survey.troubles[std::string(entry.name)].is_enabled = is_enabled(entry, config);
  }
  std::map<std::string, Collector*> owner;
  for (const CollectorEntry* entry : enabled_collectors(config)) {
    const std::string name(entry->name);
    const Result<Discovery> found = discover(*entry, context_of(config, *entry, clock, drm_users), survey);
    survey.working[name] = static_cast<bool>(found);
    if (!found) {
      survey.notes.push_back(found.error().with(name).message());
      survey.troubles[name].error = found.error().message();
      continue;
    }
    owner[name] = survey.collectors.back().get();
    for (const std::string& note : found->notes) survey.notes.push_back(name + ": " + note);
    for (const DeviceInfo& info : found->devices) indexes.add({name, info});
  }
  for (const IndexKeeper::Find& find : indexes.take_found()) {
    survey.devices.push_back({indexes.admit(find).device, owner.at(find.collector)});
  }
  for (const auto& [uuid, known] : indexes.devices()) {
    const bool is_found = std::ranges::any_of(
        survey.devices, [&](const SurveyedDevice& device) { return device.known.info.uuid == uuid; });
    if (!is_found && survey.working.contains(known.collector)) survey.missing.push_back(known);
  }
  std::sort(survey.devices.begin(), survey.devices.end(),
            [](const auto& a, const auto& b) { return a.known.index < b.known.index; });
  return survey;
}

}  // namespace gpumeter
