#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/text.hpp"
#include "collectors/import/formats/clpeak.hpp"
#include "collectors/import/lines.hpp"
#include "collectors/import/xml.hpp"

namespace gpumeter::import {
namespace {

/// A block of the text of clpeak 1.1: its title, the test's name in the XML, and the number of its rows.
struct Block {
  std::string_view title;
  std::string_view test;
  std::size_t rows;
};
constexpr Block kBlocks[] = {
    {"Global memory bandwidth", "global_memory_bandwidth", 5},
    {"Single-precision compute", "single_precision_compute", 5},
    {"Half-precision compute", "half_precision_compute", 5},
    {"half-precision compute", "half_precision_compute", 5},
    {"Double-precision compute", "double_precision_compute", 5},
    {"Integer compute Fast 24bit", "integer_compute_fast", 5},
    {"Integer compute", "integer_compute", 5},
    {"Transfer bandwidth", "transfer_bandwidth", 8},
};
constexpr std::string_view kLast = "Kernel launch latency";
constexpr std::string_view kBackend = "opencl";

std::string metric_of(std::string_view name) {
  std::string metric;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z')
      metric += static_cast<char>(c - 'A' + 'a');
    else if (c == ' ')
      metric += '_';
    else if (c != '-')
      metric += c;
  }
  return metric;
}

/// Reads the lines one by one. A run of some of clpeak's tests (--global-bandwidth) has fewer blocks, so a
/// file that was cut between two blocks reads like one. A block has all of its rows, and a device at least
/// one test.
class TextParser {
 public:
  std::optional<Error> take(const TextLine& line) {
    line_ = line.number;
    const std::string_view text = trimmed(line.text);
    if (text.empty()) return end_block();
    if (text.starts_with("Platform:")) return end_device();
    if (after(text, "Device:") && text.starts_with("Device:")) return begin_device();
    if (!is_in_device_) return fail("no text of clpeak");
    if (text.ends_with("Skipped")) return skip_block();
    if (text.starts_with(kLast)) return take_latency(text);
    if (text.ends_with(')') && text.find(" : ") == std::string_view::npos) return begin_block(text);
    return take_row(text);
  }
  std::optional<Error> end() { return end_device(); }
  Sheet take_sheet() { return std::move(sheet_); }

 private:
  Error fail(const std::string& reason) const { return at_line(line_, reason); }
  GpuResults& gpu() { return sheet_.gpus[devices_ - 1]; }

  std::optional<Error> begin_device() {
    if (auto error = end_device()) return error;
    is_in_device_ = true;
    ++devices_;
    return std::nullopt;
  }
  std::optional<Error> end_device() {
    if (auto error = end_block()) return error;
    if (is_in_device_ && !has_test_) return fail("a device without a test: the file is cut");
    is_in_device_ = has_test_ = false;
    return std::nullopt;
  }
  std::optional<Error> begin_block(std::string_view text) {
    if (auto error = end_block()) return error;
    const std::size_t bracket = text.rfind('(');
    const std::string_view title = trimmed(text.substr(0, bracket));
    block_ = std::ranges::find(kBlocks, title, &Block::title);
    if (block_ == std::end(kBlocks) || bracket == std::string_view::npos) {
      block_ = nullptr;
      return fail("a test that clpeak 1.1 does not have");
    }
    unit_ = find_unit(text.substr(bracket + 1, text.size() - bracket - 2));
    rows_ = 0;
    return unit_ == nullptr ? std::optional(fail("a unit that is not known")) : std::nullopt;
  }
  std::optional<Error> end_block() {
    const Block* const block = std::exchange(block_, nullptr);
    has_test_ = has_test_ || block != nullptr;
    if (block == nullptr || rows_ == block->rows) return std::nullopt;
    return fail(std::string(block->title) + " has " + std::to_string(rows_) + " rows instead of " +
                std::to_string(block->rows) + ": the file is cut");
  }
  std::optional<Error> skip_block() {
    block_ = nullptr;
    return std::nullopt;
  }
  std::optional<Error> take_row(std::string_view text) {
    std::string_view value = text;
    const std::string_view name = trimmed(take_until(value, ':'));
    if (name == text) return fail("no row of clpeak");
    if (block_ == nullptr) return std::nullopt;  // a property of the device
    const auto number = measure(trimmed(value));
    if (!number) return fail("no number: " + gpumeter::quoted(value));
    ++rows_;
    take_clpeak(gpu(), {kBackend, block_->test, metric_of(name), *number * unit_->scale, unit_->base});
    return std::nullopt;
  }
  std::optional<Error> take_latency(std::string_view text) {
    if (auto error = end_block()) return error;
    std::string_view value = text;
    take_until(value, ':');
    const std::vector<std::string_view> words = words_of(value);
    const auto number = words.size() == 2 ? measure(words[0]) : std::nullopt;
    const Unit* const unit = words.size() == 2 ? find_unit(words[1]) : nullptr;
    if (!number || unit == nullptr) return fail("no latency");
    take_clpeak(gpu(), {kBackend, "kernel_launch_latency", {}, *number * unit->scale, unit->base});
    has_test_ = true;
    return std::nullopt;
  }

  Sheet sheet_;
  std::size_t line_ = 0;
  unsigned devices_ = 0;
  bool is_in_device_ = false;
  bool has_test_ = false;
  const Block* block_ = nullptr;
  const Unit* unit_ = nullptr;
  std::size_t rows_ = 0;
};

Error bad_test(const Element& test) {
  return at_line(test.line, "no unit or no number in " + gpumeter::quoted(test.name));
}

/// Version 1.1: <test unit="gbps"><float>3.9</float>..</test>, or the number directly.
std::optional<Error> take_test(GpuResults& gpu, const Element& test) {
  const Unit* const unit = find_unit(test.attribute("unit"));
  if (unit == nullptr) return bad_test(test);
  const auto take = [&](std::string_view metric, std::string_view text) {
    const auto number = measure(trimmed(text));
    if (number) take_clpeak(gpu, {kBackend, test.name, metric, *number * unit->scale, unit->base});
    return number.has_value();
  };
  if (test.children.empty() && !take({}, test.text)) return bad_test(test);
  for (const Element& metric : test.children) {
    if (!take(metric.name, metric.text)) return bad_test(metric);
  }
  return std::nullopt;
}

/// Version 2: <run backend= ..><category><test name= unit=><metric name= >1</metric>.
std::optional<Error> take_run(GpuResults& gpu, const Element& run) {
  for (const Element& category : run.children) {
    for (const Element& test : category.children) {
      const Unit* const unit = find_unit(test.attribute("unit"));
      if (unit == nullptr) return bad_test(test);
      for (const Element& metric : test.children) {
        if (!metric.attribute("status").empty()) continue;
        const auto number = measure(trimmed(metric.text));
        if (!number) return bad_test(metric);
        take_clpeak(gpu, {run.attribute("backend"), test.attribute("name"), metric.attribute("name"),
                          *number * unit->scale, unit->base});
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Sheet> parse_clpeak_text(std::string_view text) {
  const auto lines = lines_of(text);
  if (!lines) return lines.error();
  TextParser parser;
  for (const TextLine& line : *lines) {
    if (auto error = parser.take(line)) return *error;
  }
  if (auto error = parser.end()) return *error;
  return parser.take_sheet();
}

Result<Sheet> parse_clpeak_xml(std::string_view text) {
  const Result<Element> root = parse_xml(text);
  if (!root) return root.error();
  if (root->name != "clpeak") return at_line(root->line, "no XML of clpeak");
  Sheet sheet;
  unsigned devices = 0;
  std::map<std::string, unsigned, std::less<>> runs;  // devices of a backend
  for (const Element& part : root->children) {
    if (part.name == "run") {
      const unsigned number = runs[std::string(part.attribute("backend"))]++;
      if (auto error = take_run(sheet.gpus[number], part)) return *error;
    }
    for (const Element& device : part.children) {
      if (device.name != "device") continue;
      GpuResults& gpu = sheet.gpus[devices++];
      for (const Element& test : device.children) {
        if (auto error = take_test(gpu, test)) return *error;
      }
    }
  }
  return sheet;
}

}  // namespace gpumeter::import
