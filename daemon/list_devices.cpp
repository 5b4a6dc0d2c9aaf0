#include "daemon/list_devices.hpp"

#include <algorithm>
#include <array>

#include "daemon/survey.hpp"

namespace gpumeter {
namespace {

using Row = std::array<std::string, 6>;

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

std::string table_of(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> width{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line.append(row[i]).append(width[i] + 2 - row[i].size(), ' ');
    text.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return text;
}

}  // namespace

std::string device_list(const config::Config& config) {
  const SystemClock clock;
  const Survey found = survey(config, clock);
  std::vector<Row> rows = {{"GPU", "UUID", "MODEL", "PCI ADDRESS", "DRIVER", "COLLECTOR"}};
  for (const SurveyedDevice& device : found.devices) rows.push_back(row_of(device));
  std::string text = found.devices.empty() ? "no GPU found\n" : table_of(rows);
  for (const std::string& note : found.notes) text.append(note).append("\n");
  return text;
}

}  // namespace gpumeter
