#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collectors/amd/gpu_metrics_layout.hpp"

namespace gpumeter::amd {

/// A gpu_metrics of the given version as a driver starts it: header, all else all-ones.
class FakeBlob {
 public:
  explicit FakeBlob(const BlobLayout& layout = blob_layouts().front())
      : layout_(layout), bytes_(layout.size, '\xff') {
    put(0, 2, layout.size);
    put(2, 1, layout.format);
    put(3, 1, layout.content);
  }

  FakeBlob& set(std::string_view field, std::uint64_t value, std::size_t element = 0) {
    const BlobPlace& place = layout_.places.at(blob_field(field));
    put(place.offset + element * place.width, place.width, value);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void put(std::size_t offset, std::size_t width, std::uint64_t value) {
    for (std::size_t i = 0; i < width; ++i) bytes_.at(offset + i) = static_cast<char>(value >> 8 * i);
  }

  const BlobLayout& layout_;
  std::string bytes_;
};

}  // namespace gpumeter::amd
