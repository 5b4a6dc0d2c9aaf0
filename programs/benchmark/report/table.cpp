#include <array>
#include <cmath>
#include <cstdio>

#include "programs/benchmark/report/report.hpp"

namespace gpumeter::benchmark {
namespace {

/// "78.7 GFLOPS": three digits and a prefix of the SI.
std::string with_prefix(double value, const char* unit) {
  static constexpr std::array<const char*, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < kPrefixes.size()) value /= 1000, ++prefix;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s%s",
                value < 10    ? 2
                : value < 100 ? 1
                              : 0,
                value, kPrefixes[prefix], unit);
  return text.data();
}

const char* unit_of(const Measurement& each) {
  if (each.quantity != Quantity::flops) return "B/s";
  return each.kind.starts_with("int") ? "OPS" : "FLOPS";
}

const char* name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::flops:
      return "matrix product";
    case Quantity::memory_bandwidth:
      return "device memory";
    case Quantity::transfer:
      return "transfer";
  }
  return "";
}

std::string row(const Measurement& each, const std::optional<double>& baseline) {
  std::array<char, 200> text{};
  const std::string ratio = baseline ? std::to_string(std::lround(*baseline * 100)) + " %" : "";
  std::snprintf(text.data(), text.size(), "  %-14s %-17s %-8s %14s %6.1f %% %5d %9s\n",
                name_of(each.quantity), each.kind.c_str(), each.backend.c_str(),
                with_prefix(each.value, unit_of(each)).c_str(),
                each.value > 0 ? each.deviation / each.value * 100 : 0, each.runs, ratio.c_str());
  return text.data();
}

std::string title(const Report& report) {
  std::string text = report.gpu.index.empty() ? "" : "GPU " + report.gpu.index + " ";
  text += report.gpu.uuid.empty() ? "" : "(" + report.gpu.uuid + ") ";
  return text + report.gpu.model + ": " + std::string(kStatusNames.of(report.status)) +
         (report.reason.empty() ? "" : ", " + report.reason) + "\n";
}

std::string device_text(const Report& report) {
  std::string text = title(report);
  if (!report.outcome.measurements.empty())
    text += "  test           kind              backend            value deviation  runs  baseline\n";
  for (std::size_t i = 0; i < report.outcome.measurements.size(); ++i)
    text += row(report.outcome.measurements[i],
                i < report.baseline_ratios.size() ? report.baseline_ratios[i] : std::nullopt);
  for (const std::string& failure : report.outcome.failures) text += "  failed: " + failure + "\n";
  for (const std::string& note : report.outcome.notes) text += "  note: " + note + "\n";
  return text;
}

}  // namespace

std::string table_text(std::span<const Report> reports) {
  std::string text;
  for (const Report& report : reports) text += (text.empty() ? "" : "\n") + device_text(report);
  return text;
}

}  // namespace gpumeter::benchmark
