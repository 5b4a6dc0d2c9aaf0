#include "daemon/cli/survey.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/api/source_report.hpp"
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

using Row = std::array<std::string, 6>;
using SourceRow = std::array<std::string, 4>;

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

Row row_of(const SurveyedDevice& device) {
  const DeviceInfo& info = device.known.info;
  return {std::to_string(device.known.index),
          info.uuid,
          or_dash(info.model),
          or_dash(info.pci_address),
          or_dash(info.driver),
          device.known.collector};
}

std::string_view word_of(ReadStatus status) noexcept {
  if (status == ReadStatus::ok) return "read";
  return status == ReadStatus::unsupported ? "absent" : to_string(status);
}

SourceRow row_of(unsigned index, const SourceReport& report) {
  const std::string remedy = report.remedy.empty() ? "" : " (" + report.remedy + ")";
  return {std::to_string(index), report.what, std::string(word_of(report.status)), report.where + remedy};
}

std::vector<SourceRow> source_rows(const Survey& found) {
  std::vector<SourceRow> rows = {{"GPU", "SOURCE", "STATE", "FROM"}};
  for (const SurveyedDevice& device : found.devices) {
    const auto* const collector = dynamic_cast<const ReportsSources*>(device.collector);
    if (collector == nullptr) continue;
    for (const SourceReport& report : collector->sources_of(device.known.info))
      rows.push_back(row_of(device.known.index, report));
  }
  return rows;
}

template <class AnyRow>
std::string table_of(const std::vector<AnyRow>& rows) {
  std::array<std::size_t, std::tuple_size_v<AnyRow>> width{};
  for (const AnyRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const AnyRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line.append(row[i]).append(width[i] + 2 - row[i].size(), ' ');
    text.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return text;
}

std::vector<UnreadDevice> unread_of(const Survey& found) {
  std::vector<DeviceStatus> read;
  for (const SurveyedDevice& device : found.devices) {
    DeviceStatus& status = read.emplace_back();
    status.pci_address = device.known.info.pci_address;
  }
  return unread_devices(found.bus, read, found.troubles);
}

/// The notes of collectors about a card that is listed as unread would repeat it.
bool repeats(const std::string& note, const std::vector<UnreadDevice>& unread) {
  return std::ranges::any_of(unread, [&note](const UnreadDevice& device) {
    return note.find(": " + device.pci_address + ": ") != std::string::npos;
  });
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

std::string device_list(const config::Config& config) {
  const SystemClock clock;
  const Survey found = survey(config, clock);
  std::vector<Row> rows = {{"GPU", "UUID", "MODEL", "PCI ADDRESS", "DRIVER", "COLLECTOR"}};
  for (const SurveyedDevice& device : found.devices) rows.push_back(row_of(device));
  std::string text = found.devices.empty() ? "no GPU found\n" : table_of(rows);
  const std::vector<SourceRow> sources = source_rows(found);
  if (sources.size() > 1) text.append("\n").append(table_of(sources));
  const std::vector<UnreadDevice> unread = unread_of(found);
  if (!unread.empty()) text.append("\non the bus and not read:\n");
  for (const UnreadDevice& device : unread) text.append(to_string(device)).append("\n");
  for (const KnownDevice& device : found.missing) {
    text += "missing: GPU " + std::to_string(device.index) + " " + device.info.uuid +
            "; if it was removed on purpose: gpumeter forget " + device.info.uuid + "\n";
  }
  for (const std::string& note : found.notes) {
    if (!repeats(note, unread)) text.append(note).append("\n");
  }
  return text;
}

}  // namespace gpumeter
