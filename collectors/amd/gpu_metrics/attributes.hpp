#pragma once

#include <span>

#include "collectors/amd/gpu_metrics/layout.hpp"

/// gpu_metrics 1.9, which describes itself (amdgpu of 2025-09 on: MI300, MI350, MI450): behind the header an
/// s32 with the number of attributes, then for each a u64 that says unit, type, id and number of elements,
/// and its elements, without any padding.
namespace gpumeter::amd {

inline constexpr int kAttributesFormat = 1;
inline constexpr int kAttributesContent = 9;

/// Finds the places of the fields in `bytes`, which begin with the header and end with the structure. By id
/// alone: the same one was seen as u32 and u64, as one value and as eight. What is not known is skipped.
/// False for bytes that break off or contradict themselves; `places` then says nothing.
bool find_attributes(std::span<const char> bytes, BlobPlaces& places) noexcept;

}  // namespace gpumeter::amd
