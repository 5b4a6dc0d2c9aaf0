#include "collectors/amd/gpu_metrics_layout.hpp"

namespace gpumeter::amd {
namespace {

struct FieldRow {
  std::string_view field;
  BlobPlace place;
};

template <std::size_t N>
consteval std::array<BlobPlace, kBlobFieldCount> placed(const FieldRow (&rows)[N]) {
  std::array<BlobPlace, kBlobFieldCount> places{};
  for (const FieldRow& row : rows) places.at(blob_field(row.field)) = row.place;  // unknown: does not compile
  return places;
}

using enum BlobUnit;

// MI100, MI200, Navi 1x to 4x.
constexpr FieldRow kV1_3[] = {
    {"temperature_edge", {4, 2, 1, celsius}},
    {"temperature_hotspot", {6, 2, 1, celsius}},
    {"temperature_mem", {8, 2, 1, celsius}},
    {"temperature_vrgfx", {10, 2, 1, celsius}},
    {"temperature_vrsoc", {12, 2, 1, celsius}},
    {"temperature_vrmem", {14, 2, 1, celsius}},
    {"average_gfx_activity", {16, 2, 1, percent}},
    {"average_umc_activity", {18, 2, 1, percent}},
    {"average_mm_activity", {20, 2, 1, percent}},
    {"average_socket_power", {22, 2, 1, watts}},
    {"energy_accumulator", {24, 8, 1, none}},  // its unit depends on the chip
    {"system_clock_counter", {32, 8, 1, nanoseconds}},
    {"average_gfxclk_frequency", {40, 2, 1, megahertz}},
    {"average_socclk_frequency", {42, 2, 1, megahertz}},
    {"average_uclk_frequency", {44, 2, 1, megahertz}},
    {"average_vclk0_frequency", {46, 2, 1, megahertz}},
    {"average_dclk0_frequency", {48, 2, 1, megahertz}},
    {"average_vclk1_frequency", {50, 2, 1, megahertz}},
    {"average_dclk1_frequency", {52, 2, 1, megahertz}},
    {"current_gfxclk", {54, 2, 1, megahertz}},
    {"current_socclk", {56, 2, 1, megahertz}},
    {"current_uclk", {58, 2, 1, megahertz}},
    {"current_vclk0", {60, 2, 1, megahertz}},
    {"current_dclk0", {62, 2, 1, megahertz}},
    {"current_vclk1", {64, 2, 1, megahertz}},
    {"current_dclk1", {66, 2, 1, megahertz}},
    {"throttle_status", {68, 4, 1, none}},  // bits depend on the chip
    {"current_fan_speed", {72, 2, 1, rpm}},
    {"pcie_link_width", {74, 2, 1, none}},
    {"pcie_link_speed", {76, 2, 1, decigigatransfers}},
    {"gfx_activity_acc", {80, 4, 1, none}},
    {"mem_activity_acc", {84, 4, 1, none}},
    {"temperature_hbm", {88, 2, 4, celsius}},
    {"firmware_timestamp", {96, 8, 1, ticks_of_10_nanoseconds}},
    {"voltage_soc", {104, 2, 1, millivolts}},
    {"voltage_gfx", {106, 2, 1, millivolts}},
    {"voltage_mem", {108, 2, 1, millivolts}},
    {"indep_throttle_status", {112, 8, 1, none}},
};

constexpr BlobLayout kLayouts[] = {
    {"gpu_metrics_v1_3", 1, 3, 120, placed(kV1_3)},
};

}  // namespace

std::span<const BlobLayout> blob_layouts() noexcept { return kLayouts; }

}  // namespace gpumeter::amd
