#include <algorithm>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/json.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

/// A test case whose figures have a family. The columns are GPUs; rows are the CPU or the peers.
struct Case {
  std::string_view name;
  std::string_view direction;  ///< empty: a copy within the memory of the GPU
};
constexpr Case kCases[] = {
    {"host_to_device_memcpy_ce", "host_to_device"},
    {"host_to_device_memcpy_sm", "host_to_device"},
    {"device_to_host_memcpy_ce", "device_to_host"},
    {"device_to_host_memcpy_sm", "device_to_host"},
    {"device_to_device_memcpy_read_ce", "device_to_device"},
    {"device_to_device_memcpy_read_sm", "device_to_device"},
    {"device_to_device_memcpy_write_ce", "device_to_device"},
    {"device_to_device_memcpy_write_sm", "device_to_device"},
    {"device_local_copy", {}},
};
/// A copy reads and writes each byte; nvbandwidth counts it once (its README).
constexpr double kReadAndWritten = 2;

/// The unit in the brackets at the end of "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)".
const Unit* unit_of(std::string_view description) {
  const std::size_t open = description.rfind('(');
  if (open == std::string_view::npos || !description.ends_with(')')) return nullptr;
  return find_unit(description.substr(open + 1, description.size() - open - 2));
}

/// "0: NVIDIA GB200 (00000008:06:00): (host)": the number, and the address if the list has it.
std::optional<Error> take_device(Sheet& sheet, const Json& entry) {
  std::string_view rest = entry.text;
  const auto number = take_number<unsigned>(rest);
  if (!number || *number >= 1024) return at_line(entry.line, "no GPU: " + gpumeter::quoted(entry.text));
  GpuResults& gpu = sheet.gpus[*number];
  for (std::size_t open = rest.find('('); open != std::string_view::npos; open = rest.find('(', open + 1)) {
    const std::string_view inner = rest.substr(open + 1, rest.find(')', open) - open - 1);
    if (std::string pci = pci_address(inner); !pci.empty()) gpu.pci = std::move(pci);
  }
  return std::nullopt;
}

std::optional<Error> take_matrix(Sheet& sheet, const Json& test, const Json& matrix) {
  const std::string_view name = test.text_of("name");
  const Unit* const unit = unit_of(test.text_of("bandwidth_description"));
  if (unit == nullptr) return at_line(test.line, "a test case in a unit that is not known");
  const auto* const known = std::ranges::find(kCases, name, &Case::name);
  for (const Json& row : matrix.items) {
    for (std::size_t column = 0; column < row.items.size(); ++column) {
      const Json& cell = row.items[column];
      if (cell.text == "N/A") continue;
      const auto value = measure(cell.text);
      if (!value) return at_line(cell.line, "no number in the matrix of " + std::string(name));
      const auto gpu = sheet.gpus.find(static_cast<unsigned>(column));
      if (gpu == sheet.gpus.end()) return at_line(cell.line, "a column without a GPU in the list");
      const double scaled = *value * unit->scale;
      if (known == std::end(kCases) || unit->base != kBytesPerSecond) {
        gpu->second.best_result(name, unit->base, scaled);
      } else if (known->direction.empty()) {
        gpu->second.memory_bandwidth("copy", scaled * kReadAndWritten);
      } else {
        gpu->second.transfer(known->direction, scaled);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Sheet> parse_nvbandwidth(std::string_view text, const Context&) {
  const Result<Json> root = parse_json(text);
  if (!root) return root.error();
  const Json* const run = root->find("nvbandwidth");
  const Json* const tests = run != nullptr ? run->find("testcases") : nullptr;
  const Json* const list = run != nullptr ? run->find("GPU Device list") : nullptr;
  if (tests == nullptr || list == nullptr)
    return at_line(root->line, "no run of nvbandwidth with a list of GPUs");
  if (const Json* const error = run->find("error")) {
    return at_line(error->line, "nvbandwidth ended with an error: " + error->text);
  }
  Sheet sheet;
  for (const Json& entry : list->items) {
    if (auto error = take_device(sheet, entry)) return *error;
  }
  for (const Json& test : tests->items) {
    const std::string_view status = test.text_of("status");
    if (status == "Waived" || status == "Not Found") continue;
    const Json* const matrix = test.find("bandwidth_matrix");
    if (status != "Passed" || matrix == nullptr) {
      return at_line(test.line, "test case " + std::string(test.text_of("name")) +
                                    " did not pass: " + std::string(status));
    }
    if (auto error = take_matrix(sheet, test, *matrix)) return *error;
  }
  return sheet;
}

}  // namespace gpumeter::import
