#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace gpumeter {

/// Writes lines of fields: `kind TAB field TAB field`. Tabs, line ends and backslashes of a text are escaped.
/// Numbers read back exactly.
class RecordWriter {
 public:
  RecordWriter& begin(std::string_view kind);
  RecordWriter& text(std::string_view value);
  RecordWriter& number(double value);
  RecordWriter& number(std::optional<double> value);
  RecordWriter& integer(std::int64_t value);
  RecordWriter& time(Nanoseconds value) { return integer(value.count()); }
  RecordWriter& time(std::optional<Nanoseconds> value);
  RecordWriter& flag(bool value) { return integer(value ? 1 : 0); }

  /// Ends the last line and returns all of them.
  std::string take();

 private:
  std::string text_;
};

/// Reads such lines. After the first missing or malformed field, every field reads as empty or 0, next()
/// returns false and failed() is true, so that a caller checks once.
class RecordReader {
 public:
  /// `lines` must outlive the reader.
  explicit RecordReader(std::string_view lines) noexcept : rest_(lines) {}

  /// Goes to the next line. False at the end and after a failure.
  bool next();
  std::string_view kind() const noexcept { return kind_; }

  std::string text();
  double number();
  std::optional<double> optional_number();
  std::int64_t integer(std::int64_t least, std::int64_t most);
  Nanoseconds time();
  std::optional<Nanoseconds> optional_time();
  bool flag() { return integer(0, 1) == 1; }
  /// True if the line has another field.
  bool has_field() const noexcept { return has_field_; }

  /// Rejects the line: its fields are well-formed, but not what they must be.
  void fail() noexcept { failed_ = true; }
  bool failed() const noexcept { return failed_; }
  /// The number of the line that was read last, from 1.
  std::size_t line() const noexcept { return line_; }

 private:
  std::string_view field();

  std::string_view rest_;    // the lines that follow
  std::string_view fields_;  // of this line, not read yet
  std::string_view kind_;
  std::size_t line_ = 0;
  bool has_field_ = false;
  bool failed_ = false;
};

}  // namespace gpumeter
