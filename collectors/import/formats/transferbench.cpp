#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

/// A memory of a Transfer: "G0", "C1", "N". TransferBench names the kinds by letters: G, F, U and so on are
/// of the GPU, C, P, B, H of the host (its "Transfer definition syntax").
struct Memory {
  enum class Kind : std::uint8_t { none, host, gpu, other };
  Kind kind = Kind::other;
  unsigned number = 0;
};

Memory memory_of(std::string_view text) {
  if (text == "N") return {Memory::Kind::none};
  if (text.empty()) return {};
  const auto number = parse_number<unsigned>(text.substr(1));
  if (!number || *number >= 1024) return {};  // several memories, as in a broadcast to "G0G1"
  if (std::string_view("GF").find(text.front()) != std::string_view::npos) {
    return {Memory::Kind::gpu, *number};
  }
  if (std::string_view("CPBHU").find(text.front()) != std::string_view::npos) {
    return {Memory::Kind::host, *number};
  }
  return {};
}

/// The GPU that a Transfer between several memories ran on: "G000:004", "GPU00:004", "D0:1", "DMA00.*:001".
std::optional<unsigned> executor_of(std::string_view text) {
  if (!text.starts_with('G') && !text.starts_with('D')) return std::nullopt;
  std::string_view rest = text.substr(std::min(text.find_first_of("0123456789"), text.size()));
  const auto number = take_number<unsigned>(rest);
  return number && *number < 1024 ? number : std::nullopt;
}

/// A copy within one memory reads and writes each byte; TransferBench counts it once.
constexpr double kReadAndWritten = 2;

void take_transfer(Sheet& sheet, const std::vector<std::string_view>& path, std::string_view name,
                   double value) {
  using Kind = Memory::Kind;
  const Memory from = memory_of(path[0]);
  const Memory to = memory_of(path[2]);
  const auto gpu = [&](const Memory& memory) -> GpuResults& { return sheet.gpus[memory.number]; };
  if (from.kind == Kind::host && to.kind == Kind::gpu) return gpu(to).transfer("host_to_device", value);
  if (from.kind == Kind::gpu && to.kind == Kind::host) return gpu(from).transfer("device_to_host", value);
  if (from.kind == Kind::none && to.kind == Kind::gpu) return gpu(to).memory_bandwidth("write", value);
  if (from.kind == Kind::gpu && to.kind == Kind::none) return gpu(from).memory_bandwidth("read", value);
  if (from.kind == Kind::gpu && to.kind == Kind::gpu) {
    if (from.number != to.number) return gpu(from).transfer("device_to_device", value);
    return gpu(from).memory_bandwidth("copy", kReadAndWritten * value);
  }
  if (const auto executor = executor_of(path[1]))
    sheet.gpus[*executor].best_result(name, kBytesPerSecond, value);
}

class Parser {
 public:
  std::optional<Error> take(const TextLine& line) {
    line_ = line.number;
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) return std::nullopt;
    if (words[0].starts_with("TransferBench")) is_named_ = true;
    if (words[0] == "Test" && words.size() == 2 && words[1].ends_with(':')) return begin_test();
    if (words[0].starts_with("Aggregate")) return end_test();
    if (words[0] == "Transfer" && is_in_test_) return take_row(line.text);
    if (words[0].starts_with("Executor") && is_in_test_) ++executors_;
    return std::nullopt;
  }

  Result<Sheet> end() {
    if (is_in_test_) return fail("a test ends before its line Aggregate: the file is cut");
    if (!is_named_ && executors_ == 0) return fail("no output of TransferBench");
    return std::move(sheet_);
  }

 private:
  Error fail(const std::string& reason) const { return at_line(line_, reason); }
  std::optional<Error> begin_test() {
    if (is_in_test_) return fail("a test begins before the line Aggregate of the test before it");
    is_in_test_ = true;
    return std::nullopt;
  }
  std::optional<Error> end_test() {
    if (!std::exchange(is_in_test_, false)) return fail("a line Aggregate outside a test");
    return std::nullopt;
  }

  /// "Transfer 00 | 56.309 GB/s | 4.767 ms | 268435456 bytes | G0 -> G000:004 -> G1".
  std::optional<Error> take_row(std::string_view line) {
    std::vector<std::string_view> words = words_of(line);
    const auto rate = std::ranges::find(words, "GB/s");
    const auto arrow = std::ranges::find(words, "->");
    const bool is_whole = rate != words.end() && rate - words.begin() >= 2 && arrow != words.end() &&
                          words.end() - arrow >= 4 && *(arrow + 2) == "->" && arrow > rate;
    const auto value = is_whole ? measure(*(rate - 1)) : std::nullopt;
    if (!value) return fail("a Transfer without its rate or its path");
    const std::vector<std::string_view> path = {*(arrow - 1), *(arrow + 1), *(arrow + 3)};
    const std::string name =
        std::string(path[0]) + " -> " + std::string(path[1]) + " -> " + std::string(path[2]);
    take_transfer(sheet_, path, name, *value * find_unit(*rate)->scale);
    return std::nullopt;
  }

  Sheet sheet_;
  std::size_t line_ = 1;
  std::size_t executors_ = 0;
  bool is_named_ = false;
  bool is_in_test_ = false;
};

}  // namespace

Result<Sheet> parse_transferbench(std::string_view text, const Context&) { return parse_lines<Parser>(text); }

}  // namespace gpumeter::import
