#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

/// Where the fields lie in amdgpu's `gpu_metrics`, one table a version, in the kernel's words
/// (drivers/gpu/drm/amd/include/kgd_pp_interface.h), at the natural alignment of a 64-bit machine.
namespace gpumeter::amd {

/// Unit of a field in one version: versions differ, so readers get base units and never see it.
enum class BlobUnit : std::uint8_t {
  none,
  celsius,
  watts,
  percent,
  megahertz,
  millivolts,
  rpm,
  decigigatransfers,  ///< 0.1 GT/s
  nanoseconds,
  ticks_of_10_nanoseconds,
};

/// Every field that any of the tables has.
inline constexpr std::string_view kBlobFields[] = {
    "temperature_edge",
    "temperature_hotspot",
    "temperature_mem",
    "temperature_vrgfx",
    "temperature_vrsoc",
    "temperature_vrmem",
    "average_gfx_activity",
    "average_umc_activity",
    "average_mm_activity",
    "average_socket_power",
    "energy_accumulator",
    "system_clock_counter",
    "average_gfxclk_frequency",
    "average_socclk_frequency",
    "average_uclk_frequency",
    "average_vclk0_frequency",
    "average_dclk0_frequency",
    "average_vclk1_frequency",
    "average_dclk1_frequency",
    "current_gfxclk",
    "current_socclk",
    "current_uclk",
    "current_vclk0",
    "current_dclk0",
    "current_vclk1",
    "current_dclk1",
    "throttle_status",
    "current_fan_speed",
    "pcie_link_width",
    "pcie_link_speed",
    "gfx_activity_acc",
    "mem_activity_acc",
    "temperature_hbm",
    "firmware_timestamp",
    "voltage_soc",
    "voltage_gfx",
    "voltage_mem",
    "indep_throttle_status",
};
inline constexpr std::size_t kBlobFieldCount = std::size(kBlobFields);

/// Position of a field in kBlobFields; kBlobFieldCount if there is none of that name.
constexpr std::size_t blob_field(std::string_view name) noexcept {
  return static_cast<std::size_t>(std::find(std::begin(kBlobFields), std::end(kBlobFields), name) -
                                  std::begin(kBlobFields));
}

/// Place of a field in one version; width 0: the version does not have it.
struct BlobPlace {
  std::uint16_t offset = 0;
  std::uint8_t width = 0;  ///< bytes of one element: 1, 2, 4 or 8
  std::uint8_t count = 0;  ///< elements
  BlobUnit unit = BlobUnit::none;
};

struct BlobLayout {
  std::string_view name;  ///< the kernel's struct
  std::uint8_t format;    ///< the two numbers of the header that choose the layout
  std::uint8_t content;
  std::uint16_t size;  ///< sizeof the struct; the header has it too
  std::array<BlobPlace, kBlobFieldCount> places;
};

/// All known versions. Minor versions are no prefixes of each other in general (1.4 moves what 1.3 has), so
/// an unlisted one is not guessed at.
std::span<const BlobLayout> blob_layouts() noexcept;

}  // namespace gpumeter::amd
