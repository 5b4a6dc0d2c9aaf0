#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "collectors/amd/gpu_metrics/layout.hpp"

/// Lays a C struct of integers out as a compiler for 64-bit machines does, while compiling.
namespace gpumeter::amd {

/// Members as words: "u16 temperature_edge pad u64 xgmi_read_data_acc[8]". A type holds for what follows it,
/// also in the next text; `pad` is a member that nobody reads; "repeat[8] { ... }" is an array of structs.
/// The header of four bytes is there already. What is no field of fields.hpp does not compile.
class StructText {
 public:
  consteval StructText(int format, int content) : format_(format), content_(content) {}

  consteval void add(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      if (end != 0) word(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  /// With the tail that makes arrays of it aligned.
  consteval std::uint16_t size() const { return static_cast<std::uint16_t>(rounded(offset_, align_)); }

  consteval const BlobPlaces& places() const { return places_; }

 private:
  static consteval std::size_t rounded(std::size_t offset, std::size_t align) {
    return (offset + align - 1) / align * align;
  }

  static consteval std::size_t number(std::string_view digits) {
    std::size_t value = 0;
    for (const char digit : digits) value = value * 10 + static_cast<std::size_t>(digit - '0');
    return value;
  }

  consteval void word(std::string_view text) {
    if (text == "u8" || text == "u16" || text == "u32" || text == "u64") {
      width_ = number(text.substr(1)) / 8;
    } else if (text == "{") {
      open();
    } else if (text == "}") {
      close();
    } else {
      const std::size_t bracket = std::min(text.find('['), text.size());
      const std::size_t count =
          bracket == text.size() ? 1 : number(text.substr(bracket + 1, text.find(']') - bracket - 1));
      member(text.substr(0, bracket), count);
    }
  }

  consteval void member(std::string_view name, std::size_t count) {
    if (name == "repeat") {
      instances_ = count;
      return;
    }
    offset_ = rounded(offset_, width_);
    align_ = std::max(align_, width_);
    if (name != "pad") {
      const std::size_t field = blob_field(name);
      places_.at(field) = {static_cast<std::uint16_t>(offset_),
                           static_cast<std::uint16_t>(count),
                           0,
                           1,
                           static_cast<std::uint8_t>(width_),
                           false,
                           blob_unit(field, format_, content_)};
    }
    offset_ += count * width_;
  }

  // The array starts at the alignment of its struct, which has an u64 in all versions.
  consteval void open() {
    offset_ = rounded(offset_, sizeof(std::uint64_t));
    start_ = offset_;
  }

  consteval void close() {
    const std::size_t stride = rounded(offset_ - start_, sizeof(std::uint64_t));
    for (BlobPlace& place : places_) {
      if (place.width == 0 || place.offset < start_) continue;
      place.stride = static_cast<std::uint16_t>(stride);
      place.instances = static_cast<std::uint8_t>(instances_);
    }
    offset_ = start_ + instances_ * stride;
  }

  int format_, content_;
  std::size_t offset_ = 4;  // behind the header
  std::size_t align_ = 2;   // the header's
  std::size_t width_ = 0;
  std::size_t instances_ = 1;
  std::size_t start_ = 0;
  BlobPlaces places_{};
};

consteval BlobLayout laid_out(std::string_view name, int format, int content,
                              std::initializer_list<std::string_view> texts) {
  StructText text(format, content);
  for (const std::string_view part : texts) text.add(part);
  return {name, static_cast<std::uint8_t>(format), static_cast<std::uint8_t>(content), text.size(),
          text.places()};
}

}  // namespace gpumeter::amd
