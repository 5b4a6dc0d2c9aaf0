#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "collectors/amd/readers/texts.hpp"
#include "collectors/api/catalog.hpp"

/// Rows of error counts: of the card's blocks (RAS, since the driver was loaded) and of its PCI Express port
/// (AER, since the machine started).
namespace gpumeter::amd {

/// Blocks of kernel 6.12 amdgpu_ras.c, ras_block_string and ras_mca_block_string. A card has the blocks that
/// its firmware monitors.
inline constexpr std::string_view kRasFiles[] = {
    "ras/umc_err_count",     "ras/sdma_err_count",     "ras/gfx_err_count",      "ras/mmhub_err_count",
    "ras/athub_err_count",   "ras/pcie_bif_err_count", "ras/hdp_err_count",      "ras/xgmi_wafl_err_count",
    "ras/df_err_count",      "ras/smn_err_count",      "ras/sem_err_count",      "ras/mp0_err_count",
    "ras/mp1_err_count",     "ras/fuse_err_count",     "ras/mca_err_count",      "ras/mca_mp0_err_count",
    "ras/mca_mp1_err_count", "ras/mca_mpio_err_count", "ras/mca_iohc_err_count", "ras/vcn_err_count",
    "ras/jpeg_err_count",    "ras/ih_err_count",       "ras/mpio_err_count"};

/// "ras/umc_err_count" -> "umc"
constexpr std::string_view block_of(std::string_view ras_file) noexcept {
  constexpr std::string_view kBefore = "ras/";
  constexpr std::string_view kBehind = "_err_count";
  return ras_file.substr(kBefore.size(), ras_file.size() - kBefore.size() - kBehind.size());
}

/// The memory controller counts errors of the attached memory, HBM or GDDR. The other blocks count those of
/// their own SRAM, buses and logic.
constexpr bool is_memory(std::string_view block) noexcept { return block == "umc"; }

// The kernel counts AER messages itself, so reading them does not wake the card
// (Documentation/PCI/pcieaer-howto).
inline constexpr Traits kAerCount{.min = 0, .wakes = false};
inline constexpr Traits kRasCount{.min = 0};

constexpr Row ras_row(std::string_view file, std::size_t severity) noexcept {
  const std::string_view block = block_of(file);
  const std::string_view name = kRasSeverities[severity].severity;
  const AmdSource count = ras_count(file, severity);
  if (is_memory(block))
    return {
        &catalog::memory_errors, {"severity", name, "location", block}, count, 1, Tier::slow, {}, kRasCount};
  return {&catalog::hardware_errors, {"block", block, "severity", name}, count, 1, Tier::slow, {}, kRasCount};
}

constexpr Row aer_row(std::string_view file, std::string_view severity, std::size_t kind) noexcept {
  const LabelSet labels("severity", severity, "kind", kAerKinds[kind].kind);
  return {&catalog::pcie_errors, labels, aer_count(file, kind), 1, Tier::slow, {}, kAerCount};
}

inline constexpr std::size_t kRasRowCount = std::size(kRasFiles) * std::size(kRasSeverities);
inline constexpr std::size_t kAerRowCount = kAerCorrectable + 2 * (std::size(kAerKinds) - kAerCorrectable);

/// Rows of one file are adjacent, so that the file is read once (TextCache).
consteval std::array<Row, kRasRowCount + kAerRowCount> error_rows() {
  std::array<Row, kRasRowCount + kAerRowCount> rows{};
  auto* end = rows.data();
  for (const std::string_view file : kRasFiles) {
    for (std::size_t i = 0; i < std::size(kRasSeverities); ++i) *end++ = ras_row(file, i);
  }
  for (std::size_t i = 0; i < kAerCorrectable; ++i) *end++ = aer_row("aer_dev_correctable", "correctable", i);
  for (std::size_t i = kAerCorrectable; i < std::size(kAerKinds); ++i)
    *end++ = aer_row("aer_dev_nonfatal", "nonfatal", i);
  for (std::size_t i = kAerCorrectable; i < std::size(kAerKinds); ++i)
    *end++ = aer_row("aer_dev_fatal", "fatal", i);
  return rows;
}

}  // namespace gpumeter::amd
