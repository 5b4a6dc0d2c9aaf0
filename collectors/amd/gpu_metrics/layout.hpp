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
/// in general (1.4 moves what 1.3 has), so an unlisted one is not guessed at. 1.9 describes itself
/// (attributes.hpp).
std::span<const BlobLayout> blob_layouts() noexcept;

}  // namespace gpumeter::amd
