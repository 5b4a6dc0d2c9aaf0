#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "collectors/api/catalog.hpp"
#include "collectors/intel/ras/counts.hpp"
#include "collectors/intel/readers/basic.hpp"
#include "collectors/sources/aer.hpp"

/// Rows of error counts: of the card's PCI Express port (AER, since the machine started), and of its blocks
/// (since the driver was loaded, or an administrator cleared them).
namespace gpumeter::intel {

inline constexpr Traits kAerCount{.min = 0, .wakes = false};
inline constexpr Traits kCount{.min = 0};

constexpr Row aer_row(std::string_view file, std::string_view severity, std::size_t kind) noexcept {
  const LabelSet labels("severity", severity, "kind", aer::kAerKinds[kind].kind);
  return {&catalog::pcie_errors, labels, aer_count(file, kind), 1, Tier::slow, {}, kAerCount};
}

inline constexpr std::size_t kUncorrectable = std::size(aer::kAerKinds) - aer::kAerCorrectable;

/// Rows of one file are adjacent, so that the file is read once (TextCache).
consteval std::array<Row, aer::kAerCorrectable + 2 * kUncorrectable> aer_rows() {
  std::array<Row, aer::kAerCorrectable + 2 * kUncorrectable> rows{};
  auto* end = rows.data();
  for (std::size_t i = 0; i < aer::kAerCorrectable; ++i) {
    *end++ = aer_row("aer_dev_correctable", "correctable", i);
  }
  for (std::size_t i = aer::kAerCorrectable; i < std::size(aer::kAerKinds); ++i) {
    *end++ = aer_row("aer_dev_nonfatal", "nonfatal", i);
  }
  for (std::size_t i = aer::kAerCorrectable; i < std::size(aer::kAerKinds); ++i) {
    *end++ = aer_row("aer_dev_fatal", "fatal", i);
  }
  return rows;
}

constexpr Row ras_row(std::size_t severity, std::size_t error) noexcept {
  const std::string_view name = ras::kSeverities[severity];
  const std::string_view block = ras::kErrors[error].block;
  const IntelSource count = error_count(severity, error);
  if (error == ras::kDeviceMemory) {
    return {&catalog::memory_errors, {"severity", name, "location", block}, count, 1, Tier::slow, {}, kCount};
  }
  return {&catalog::hardware_errors, {"block", block, "severity", name}, count, 1, Tier::slow, {}, kCount};
}

consteval std::array<Row, ras::kSeverityCount * ras::kErrorCount> ras_rows() {
  std::array<Row, ras::kSeverityCount * ras::kErrorCount> rows{};
  auto* end = rows.data();
  for (std::size_t severity = 0; severity < ras::kSeverityCount; ++severity) {
    for (std::size_t error = 0; error < ras::kErrorCount; ++error) *end++ = ras_row(severity, error);
  }
  return rows;
}
inline constexpr auto kErrorRows = joined(aer_rows(), ras_rows());

}  // namespace gpumeter::intel
