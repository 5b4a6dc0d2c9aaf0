#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/json.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

constexpr std::string_view kRoots[] = {"DCGM Diagnostic", "DCGM GPU Diagnostic"};  // of DCGM 4, and before

/// Checks of settings, such as the persistence mode: a failure says nothing about what the GPU computes.
constexpr std::string_view kOfSettings = "Deployment";

struct Figure {
  std::string_view mark;       ///< in "GPU 0 Host to GPU bandwidth:\\t\\t12.13 GB/s"
  std::string_view direction;  ///< empty: a result
  std::string_view test = {};
};
constexpr Figure kFigures[] = {
    {" Host to GPU bandwidth:", "host_to_device"},
    {" GPU to Host bandwidth:", "device_to_host"},
    {" bidirectional bandwidth:", {}, "pcie bidirectional"},
    {" GPU to Host latency:", {}, "pcie latency device to host"},
    {" Host to GPU latency:", {}, "pcie latency host to device"},
    {" bidirectional latency:", {}, "pcie latency bidirectional"},
};

/// DCGM's numbers of the GPUs of a result. nullopt: it is about something else, such as a CPU.
std::optional<std::vector<unsigned>> gpus_of(const Json& result) {
  if (const Json* const group = result.find("entity_group"); group != nullptr && group->text != "GPU") {
    return std::nullopt;
  }
  for (const char* const key : {"entity_id", "gpu_id", "gpu_ids"}) {
    const Json* const ids = result.find(key);
    if (ids == nullptr) continue;
    if (ids->is(Json::Kind::number)) {
      return ids->number >= 0 && ids->number < 1024
                 ? std::optional(std::vector{static_cast<unsigned>(ids->number)})
                 : std::nullopt;
    }
    std::vector<unsigned> numbers;
    for (std::string_view rest = ids->text; !rest.empty();) {
      const auto number = parse_number<unsigned>(trimmed(take_until(rest, ',')));
      if (!number || *number >= 1024) return std::nullopt;
      numbers.push_back(*number);
    }
    return numbers;
  }
  return std::nullopt;
}

/// "GPU 0 Host to GPU bandwidth:\\t\\t12.13 GB/s".
void take_info(Sheet& sheet, std::string_view info) {
  std::string_view rest = info;
  if (!rest.starts_with("GPU ")) return;
  rest.remove_prefix(4);
  const auto number = take_number<unsigned>(rest);
  if (!number || *number >= 1024) return;
  const auto* const figure =
      std::ranges::find_if(kFigures, [&](const Figure& each) { return rest.starts_with(each.mark); });
  if (figure == std::end(kFigures)) return;
  const std::vector<std::string_view> words = words_of(rest.substr(figure->mark.size()));
  const Unit* const unit = words.size() == 2 ? find_unit(words[1]) : nullptr;
  const double value = words.empty() ? -1 : measure(words[0]).value_or(-1);
  if (value < 0 || unit == nullptr) return;
  GpuResults& gpu = sheet.gpus[*number];
  if (figure->direction.empty()) {
    gpu.result(figure->test, unit->base, value * unit->scale);
  } else {
    gpu.transfer(figure->direction, value * unit->scale);
  }
}

std::optional<Error> take_result(Sheet& sheet, const Json& result, std::string_view test, bool is_setting) {
  const std::string_view status = result.text_of("status");
  const bool passed = status == "PASS" || status == "Pass" || status == "pass";
  const bool failed = status == "FAIL" || status == "Fail" || status == "fail";
  if (status.empty()) return at_line(result.line, "a result of " + std::string(test) + " without a status");
  if (const Json* const infos = result.find("info")) {
    for (const Json& info : infos->items) take_info(sheet, info.text);
    if (infos->is(Json::Kind::text)) take_info(sheet, infos->text);
  }
  if (!passed && !failed) return std::nullopt;  // skipped
  const auto gpus = gpus_of(result);
  if (!gpus) return std::nullopt;
  for (const unsigned number : *gpus) {
    GpuResults& gpu = sheet.gpus[number];
    gpu.result(test, "pass", passed ? 1 : 0);
    if (!is_setting) gpu.verdict(failed);
  }
  return std::nullopt;
}

std::optional<Error> take_category(Sheet& sheet, const Json& category) {
  const Json* const tests = category.find("tests");
  if (tests == nullptr) return at_line(category.line, "a category without tests");
  for (const Json& test : tests->items) {
    if (test.is(Json::Kind::null)) continue;
    const std::string_view name = test.text_of("name");
    const Json* const results = test.find("results");
    if (name.empty() || results == nullptr) return at_line(test.line, "a test without a name or results");
    const bool is_setting = category.text_of("category") == kOfSettings || name == "software";
    for (const Json& result : results->items) {
      if (auto error = take_result(sheet, result, name, is_setting)) return error;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Sheet> parse_dcgm_diag(std::string_view text, const Context&) {
  std::size_t line = 1;  // dcgmi prints a sentence before the document
  std::string_view rest = text;
  while (!rest.empty() && !trimmed(rest.substr(0, rest.find('\n'))).starts_with('{')) {
    take_until(rest, '\n');
    ++line;
  }
  const Result<Json> root = parse_json(rest, line);
  if (!root) return root.error();
  const Json* categories = nullptr;
  for (const std::string_view key : kRoots) {
    if (const Json* const run = root->find(key)) categories = run->find("test_categories");
  }
  if (categories == nullptr) return at_line(root->line, "no result of dcgmi diag");
  Sheet sheet;
  for (const Json& category : categories->items) {
    if (auto error = take_category(sheet, category)) return *error;
  }
  return sheet;
}

}  // namespace gpumeter::import
