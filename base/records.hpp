#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace gpumeter {

/// A type with a function that names its fields, for both directions, in its own namespace:
///
///     template <class Fields>
///     void fields(Fields& f, SenderId& id) { f(id.uid, id.pid, id.start_time); }
///
/// It changes nothing if `Fields::kReads` is false.
template <class T, class Fields>
concept HasFields = requires(Fields& f, T& value) { fields(f, value); };

/// Writes lines of fields: `kind TAB field TAB field`. A field is a text, a number, an enum's number, a time
/// in nanoseconds, an optional one (`-`: none) or an object that HasFields; an optional object has a flag
/// before it. Tabs, line ends and backslashes of a text are escaped. Numbers read back exactly.
class RecordWriter {
 public:
  static constexpr bool kReads = false;

  RecordWriter& begin(std::string_view kind);
  template <class... Values>
  RecordWriter& operator()(const Values&... values) {
    (put(values), ...);
    return *this;
  }
  /// An enum by its name.
  template <class Enum, std::size_t N>
  RecordWriter& named(Enum value, const EnumNames<Enum, N>& names) {
    return (*this)(names.of(value));
  }
  template <class... Values>
  RecordWriter& amounts(const Values&... values) {
    return (*this)(values...);
  }
  RecordWriter& elapsed(Nanoseconds value) { return (*this)(value); }
  RecordWriter& to_end(const std::map<std::string, double>& amounts);
  RecordWriter& check(bool) noexcept { return *this; }

  /// Ends the last line and returns all of them.
  std::string take();

 private:
  void put(std::string_view text);
  void put(double value);
  void put(Nanoseconds value) { put(value.count()); }
  void put_integer(std::int64_t value);
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  void put(T value) {
    put_integer(static_cast<std::int64_t>(value));
  }
  template <class T>
  void put(const std::optional<T>& value) {
    if constexpr (HasFields<T, RecordWriter>) put(value.has_value());
    if (value) return put(*value);
    if constexpr (!HasFields<T, RecordWriter>) put(std::string_view("-"));
  }
  template <HasFields<RecordWriter> T>
  void put(const T& value) {
    fields(*this, const_cast<T&>(value));  // which changes nothing, see HasFields
  }

  std::string text_;
};

/// Reads such lines. After the first missing or malformed field, every field reads as empty or 0, next()
/// returns false and failed() is true, so that a caller checks once.
class RecordReader {
 public:
  static constexpr bool kReads = true;

  /// `lines` must outlive the reader.
  explicit RecordReader(std::string_view lines) noexcept : rest_(lines) {}

  /// Goes to the next line. False at the end and after a failure.
  bool next();
  std::string_view kind() const noexcept { return kind_; }

  /// Numbers are finite, and integers within their type.
  template <class... Values>
  RecordReader& operator()(Values&... values) {
    (get(values), ...);
    return *this;
  }
  template <class Value>
  Value take() {
    Value value{};
    get(value);
    return value;
  }
  template <class Enum, std::size_t N>
  RecordReader& named(Enum& value, const EnumNames<Enum, N>& names) {
    const std::optional<Enum> known = names.find(take<std::string>());
    value = known.value_or(value);
    return check(known.has_value());
  }
  /// Numbers that are not negative.
  template <class... Values>
  RecordReader& amounts(Values&... values) {
    (*this)(values...);
    return check((... && (std::optional<double>(values).value_or(0) >= 0)));
  }
  /// A time by CLOCK_BOOTTIME, which shift_elapsed() moves to that of this boot.
  RecordReader& elapsed(Nanoseconds& value) {
    get(value);
    value += shift_;
    return *this;
  }
  void shift_elapsed(Nanoseconds shift) noexcept { shift_ = shift; }
  /// Names and amounts up to the line's end.
  RecordReader& to_end(std::map<std::string, double>& amounts);
  /// True if the line has another field.
  bool has_field() const noexcept { return has_field_ && !failed_; }

  /// Rejects the line unless its fields are what they must be.
  RecordReader& check(bool is_right) noexcept {
    failed_ = failed_ || !is_right;
    return *this;
  }
  void fail() noexcept { failed_ = true; }
  bool failed() const noexcept { return failed_; }
  /// The number of the line that was read last, from 1.
  std::size_t line() const noexcept { return line_; }

 private:
  std::string_view field();
  bool take_none();
  std::int64_t integer(std::int64_t least, std::int64_t most);
  void get(std::string& value);
  void get(double& value);
  void get(Nanoseconds& value);
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  void get(T& value) {
    using Number =
        typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>, std::type_identity<T>>::type;
    using Limits = std::numeric_limits<Number>;
    constexpr bool kIsWide = sizeof(Number) == sizeof(std::int64_t);
    value =
        static_cast<T>(integer(kIsWide && !Limits::is_signed ? 0 : static_cast<std::int64_t>(Limits::min()),
                               kIsWide ? INT64_MAX : static_cast<std::int64_t>(Limits::max())));
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool has_value = false;
    if constexpr (HasFields<T, RecordReader>) {
      get(has_value);
    } else {
      has_value = !take_none();
    }
    value = has_value ? std::optional(take<T>()) : std::nullopt;
  }
  template <HasFields<RecordReader> T>
  void get(T& value) {
    fields(*this, value);
  }

  std::string_view rest_;    // the lines that follow
  std::string_view fields_;  // of this line, not read yet
  std::string_view kind_;
  std::size_t line_ = 0;
  bool has_field_ = false;
  bool failed_ = false;
  Nanoseconds shift_{};
};

}  // namespace gpumeter
