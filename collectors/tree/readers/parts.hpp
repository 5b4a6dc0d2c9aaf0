#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "collectors/tree/readers.hpp"

/// Shared by the readers of this folder.
namespace gpumeter::tree::readers {

inline constexpr Sample kNone = Sample::miss(ReadStatus::unsupported);

/// A text's value by `parse`, which returns an optional number. A text that does not parse is a failed read.
template <class Parse>
Sample parsed(TreeContext& context, int file, Parse parse) noexcept {
  const TextCache::Text text = context.text(file);
  if (text.status != ReadStatus::ok) return Sample::miss(text.status);
  if (text.text.empty()) return kNone;
  const std::optional<double> value = parse(text.text);
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::failed);
}

/// Splits "a: b" or "a = b" at the separator.
inline std::pair<std::string_view, std::string_view> split(std::string_view name,
                                                           std::string_view separator) {
  const std::size_t at = name.find(separator);
  if (at == std::string_view::npos) return {name, {}};
  return {name.substr(0, at), name.substr(at + separator.size())};
}

/// A divisor is exact where its inverse, a row's scale, is not: 1 / 1e-9 is no round number.
inline double divisor(const ReadSource& source) noexcept {
  return source.argument == 0 ? 1 : static_cast<double>(source.argument);
}

}  // namespace gpumeter::tree::readers
