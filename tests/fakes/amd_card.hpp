#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "collectors/amd/gpu_metrics.hpp"

namespace gpumeter::amd {

inline const BlobLayout& blob_layout(int format, int content) {
  for (const BlobLayout& layout : blob_layouts()) {
    if (layout.format == format && layout.content == content) return layout;
  }
  throw std::out_of_range("no such gpu_metrics");
}

/// Writes the bytes of `value` at `offset`, lowest first. Pads with zeros if `width` is larger than the
/// value.
inline void put_number(std::string& bytes, std::size_t offset, std::size_t width, std::uint64_t value) {
  for (std::size_t i = 0; i < width; ++i, value >>= 8) bytes.at(offset + i) = static_cast<char>(value);
}

/// A gpu_metrics of the given version as a driver initialises it: the header, and ones everywhere else.
class FakeBlob {
 public:
  explicit FakeBlob(const BlobLayout& layout = blob_layout(1, 3))
      : layout_(layout), bytes_(layout.size, '\xff') {
    put_number(bytes_, 0, 2, layout.size);
    put_number(bytes_, 2, 1, layout.format);
    put_number(bytes_, 3, 1, layout.content);
  }
  FakeBlob(int format, int content) : FakeBlob(blob_layout(format, content)) {}

  FakeBlob& set(std::string_view field, std::uint64_t value, std::size_t element = 0,
                std::size_t instance = 0) {
    const BlobPlace& place = layout_.places.at(blob_field(field));
    put_number(bytes_, place.offset + instance * place.stride + element * place.width, place.width, value);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  const BlobLayout& layout_;
  std::string bytes_;
};

/// A gpu_metrics 1.9, attribute by attribute.
class FakeAttributes {
 public:
  enum Type : std::uint8_t { u8, s8, u16, s16, u32, s32, u64, s64 };

  FakeAttributes() { put_number(bytes_, 2, 2, 0x0901); }

  FakeAttributes& add(unsigned id, Type type, std::initializer_list<std::uint64_t> values,
                      unsigned unit = 0) {
    append(8,
           std::uint64_t{unit} << 24 | std::uint64_t{type} << 20 | std::uint64_t{id} << 10 | values.size());
    for (const std::uint64_t value : values) append(std::size_t{1} << type / 2, value);
    return announce(count_ + 1);
  }

  /// Writes this count of attributes, whatever their real number is.
  FakeAttributes& announce(std::uint64_t count) {
    count_ = count;
    put_number(bytes_, 4, 4, count);
    put_number(bytes_, 0, 2, bytes_.size());
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void append(std::size_t width, std::uint64_t value) {
    bytes_.resize(bytes_.size() + width);
    put_number(bytes_, bytes_.size() - width, width, value);
  }

  std::string bytes_ = std::string(8, '\0');
  std::uint64_t count_ = 0;
};

}  // namespace gpumeter::amd
