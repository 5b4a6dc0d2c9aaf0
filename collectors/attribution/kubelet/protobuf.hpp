#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

/// Helpers of the decoders. A field is known by its number and its wire type together: a known number with
/// another wire type is skipped.
namespace gpumeter::kubelet {

constexpr std::uint32_t text_field(std::uint32_t number) noexcept {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number_field(std::uint32_t number) noexcept {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}

inline protozero::pbf_reader reader_of(std::string_view bytes) noexcept {
  return protozero::pbf_reader(bytes.data(), bytes.size());
}

inline std::string_view view_of(protozero::pbf_reader& message) {
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

/// Kubernetes' names have at most 253 bytes.
inline constexpr std::size_t kLongestText = 256;

inline std::string text_of(protozero::pbf_reader& message) {
  return std::string(view_of(message).substr(0, kLongestText));
}

/// A node runs some hundred pods, a pod some containers, and a container some devices. What is beyond these
/// limits is skipped.
inline constexpr std::size_t kMostPods = 4096;
inline constexpr std::size_t kMostContainers = 64;
inline constexpr std::size_t kMostDevices = 128;

/// Calls `read(field, message)` for each field of a message; `read` returns false to have the field skipped.
template <class Read>
void each_field(std::string_view bytes, Read read) {
  protozero::pbf_reader message = reader_of(bytes);
  while (message.next()) {
    if (!read(message.tag_and_type(), message)) message.skip();
  }
}

/// Returns the value of `decode()`, or the Error of protozero's exception.
template <class Decode>
auto decoded(Decode decode) -> Result<decltype(decode())> {
  try {
    return decode();
  } catch (const std::exception& problem) {
    return Error(std::string("not protobuf: ") + problem.what());
  }
}

/// An entry of a map<string, string>.
inline std::pair<std::string_view, std::string_view> map_entry(std::string_view bytes) {
  std::pair<std::string_view, std::string_view> entry;
  each_field(bytes, [&entry](std::uint32_t field, protozero::pbf_reader& message) {
    if (field == text_field(1)) return entry.first = view_of(message), true;
    if (field == text_field(2)) return entry.second = view_of(message), true;
    return false;
  });
  return entry;
}

}  // namespace gpumeter::kubelet
