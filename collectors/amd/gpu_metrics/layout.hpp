#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectors/amd/gpu_metrics/fields.hpp"

/// Where the fields lie in amdgpu's `gpu_metrics`, by version.
namespace gpumeter::amd {

/// Place of a field in one version; width 0: the version does not have it.
struct BlobPlace {
  std::uint16_t offset = 0;
  std::uint16_t count = 0;     ///< elements
  std::uint16_t stride = 0;    ///< of the structs that each have the field, one a partition
  std::uint8_t instances = 1;  ///< of those structs
  std::uint8_t width = 0;      ///< bytes of one element: 1, 2, 4 or 8
  bool is_signed = false;
  BlobUnit unit = BlobUnit::none;
};

using BlobPlaces = std::array<BlobPlace, kBlobFieldCount>;

struct BlobLayout {
  std::string_view name;  ///< the kernel's struct
  std::uint8_t format;    ///< the two numbers of the header that choose the layout
  std::uint8_t content;
  std::uint16_t size;  ///< sizeof the struct; the header has it too
  BlobPlaces places;
};

/// All versions that are structs: 1.0 to 1.8, 2.0 to 2.4, 3.0. Minor versions are no prefixes of each other
/// in general (1.4 moves what 1.3 has), so an unlisted one is not guessed at. 1.9 describes itself:
/// see find_attributes().
std::span<const BlobLayout> blob_layouts() noexcept;

// gpu_metrics 1.9, which describes itself (amdgpu of 2025-09 on: MI300, MI350, MI450): behind the header an
// s32 with the number of attributes, then for each a u64 with unit, type, id and number of elements,
// and its elements, without any padding.

inline constexpr int kAttributesFormat = 1;
inline constexpr int kAttributesContent = 9;

/// Finds the places of the fields in `bytes`, which begin with the header and end with the structure. By id
/// alone: the same one was seen as u32 and u64, as one value and as eight. What is not known is skipped.
/// False for bytes that break off or contradict themselves; `places` is then meaningless.
bool find_attributes(std::span<const char> bytes, BlobPlaces& places) noexcept;

}  // namespace gpumeter::amd
