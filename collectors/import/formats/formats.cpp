#include "collectors/import/formats/formats.hpp"

#include <algorithm>

#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

constexpr Format kFormats[] = {
    {"clpeak", "clpeak: text or XML of 1.1, XML of 2, JSON of 3", parse_clpeak},
    {"nvbandwidth", "nvbandwidth -j", parse_nvbandwidth},
    {"dcgm-diag", "dcgmi diag --json, DCGM 2 to 4", parse_dcgm_diag},
    {"rocm-bandwidth-test", "rocm-bandwidth-test: its matrices", parse_rocm_bandwidth},
    {"transferbench", "TransferBench: its transfers, as a table or CSV", parse_transferbench},
    {"deepbench", "DeepBench: its tables", parse_deepbench},
    {"ai-benchmark", "AI-Benchmark: what it prints", parse_ai_benchmark},
    {"mlperf", "MLPerf: :::MLLOG lines of training, or mlperf_log_summary.txt of inference", parse_mlperf},
    {"nccl-tests", "nccl-tests and rccl-tests: all_reduce_perf and the others", parse_nccl_tests},
};

}  // namespace

std::span<const Format> formats() noexcept { return kFormats; }

const Format* find_format(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kFormats, name, &Format::name);
  return found == std::end(kFormats) ? nullptr : found;
}

Result<Sheet> parse_file(const Format& format, std::string_view text, const Context& context) {
  Result<Sheet> sheet = format.parse(text, context);
  if (!sheet) return sheet;
  sheet->suite = format.name;
  std::erase_if(sheet->gpus, [](const auto& entry) { return entry.second.empty(); });
  const auto last = 1 + static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (sheet->gpus.empty()) return at_line(last, "the file has no result of a GPU");
  for (const auto& [number, gpu] : sheet->gpus) {
    if (!gpu.has_too_many()) continue;
    return at_line(last, "GPU " + std::to_string(number) + " has more than " +
                             std::to_string(GpuResults::kMost) + " results, which the daemon would not keep");
  }
  return sheet;
}

}  // namespace gpumeter::import
