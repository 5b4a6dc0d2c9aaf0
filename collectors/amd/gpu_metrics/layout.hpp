#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectors/amd/gpu_metrics/fields.hpp"

/// Offsets of the fields in amdgpu's `gpu_metrics`, by version.
namespace gpumeter::amd {

/// Place of a field in one version; width 0: the version lacks the field.
struct BlobPlace {
  std::uint16_t offset = 0;
  std::uint16_t count = 0;     ///< elements
  std::uint16_t stride = 0;    ///< distance between the structs that contain the field, one per partition
  std::uint8_t instances = 1;  ///< number of those structs
  std::uint8_t width = 0;      ///< bytes of one element: 1, 2, 4 or 8
  bool is_signed = false;
  BlobUnit unit = BlobUnit::none;
};

using BlobPlaces = std::array<BlobPlace, kBlobFieldCount>;

struct BlobLayout {
  std::string_view name;  ///< the kernel's struct
  std::uint8_t format;    ///< format and content select the layout, by the header's two numbers
  std::uint8_t content;
  std::uint16_t size;  ///< sizeof the struct; the header contains it too
  BlobPlaces places;
};

/// All versions that are structs: 1.0 to 1.8, 2.0 to 2.4, 3.0. Minor versions are generally not prefixes of
/// each other (1.4 moves fields of 1.3), so an unlisted version is rejected. 1.9 describes itself: see
/// find_attributes().
std::span<const BlobLayout> blob_layouts() noexcept;

// gpu_metrics 1.9, which describes itself (amdgpu of 2025-09 on: MI300, MI350, MI450). After the header
// follows an s32 with the number of attributes. Each attribute is a u64 with unit, type, id and number of
// elements, followed by its elements, without any padding.

inline constexpr int kAttributesFormat = 1;
inline constexpr int kAttributesContent = 9;

/// Finds the places of the fields in `bytes`, which begin with the header and end with the structure. Fields
/// are matched by id alone: the same field occurs as u32 and u64, and as one value and as eight. Unknown
/// attributes are skipped. Returns false if the bytes are truncated or inconsistent; `places` is then
/// meaningless.
bool find_attributes(std::span<const char> bytes, BlobPlaces& places) noexcept;

}  // namespace gpumeter::amd
