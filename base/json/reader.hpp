#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/text.hpp"

namespace gpumeter {

/// Reads a JSON document of a known shape from left to right, without a tree and without allocation. For
/// documents that a program prints in a fixed order and that may be torn or hostile. The first error ends the
/// reading: failed() is true, and every later call returns nothing. Commas are not required: NCCL 2.28
/// omits one.
///
///   JsonReader in(text);
///   in.begin_object();
///   for (std::string_view key; in.next_key(key);) key == "size" ? size = in.number<int>() : in.skip();
///
/// The text must outlive the reader and what it returns. One thread.
class JsonReader {
 public:
  static constexpr std::size_t kDeepest = 32;  ///< objects and arrays within each other

  explicit JsonReader(std::string_view text) noexcept : rest_(text) {}

  /// Enters an object or an array; any other value is an error.
  bool begin_object() noexcept { return begin('{'); }
  bool begin_array() noexcept { return begin('['); }

  /// Takes the next key of the object that was entered last. Returns false at its end, and after an error.
  /// The caller reads or skips the value before the next call.
  bool next_key(std::string_view& key) noexcept;
  /// Returns true if the array that was entered last has one more element, which the caller reads or skips.
  bool next_element() noexcept;

  /// Returns the text between the quotes. Escapes are left as they are.
  std::string_view string() noexcept;
  /// A value that is no number, or none that fits, is an error.
  template <class Number>
  Number number() noexcept {
    const std::optional<Number> value = parse_number<Number>(token());
    if (!value) fail();
    return value.value_or(Number{});
  }
  bool boolean() noexcept;
  /// Skips a value of any kind.
  void skip() noexcept;

  bool failed() const noexcept { return failed_; }
  /// Returns true if the document was read to its end and nothing follows.
  bool is_complete() noexcept;

 private:
  void fail() noexcept { failed_ = true; }
  void skip_blanks() noexcept;
  bool take(char expected) noexcept;
  bool begin(char bracket) noexcept;
  bool end(char bracket) noexcept;
  std::string_view token() noexcept;
  void skip_scalar() noexcept;

  std::string_view rest_;
  std::size_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace gpumeter
