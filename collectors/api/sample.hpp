#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/text.hpp"

namespace gpumeter {

/// How a read ended. An absent value is a status, never 0 or NaN.
enum class ReadStatus : std::uint8_t {
  ok,
  unsupported,   ///< the source has no value; retried rarely until it has one
  gone,          ///< the device was removed
  timeout,       ///< the driver gave up
  denied,        ///< no permission
  failed,        ///< any other error
  out_of_range,  ///< the driver gave an impossible number
};
inline constexpr std::size_t kReadStatusCount = 7;

/// The label value of gpumeter_read_errors_total{status}.
inline constexpr EnumNames<ReadStatus, kReadStatusCount> kReadStatusNames = {
    {{ReadStatus::ok, "ok"},
     {ReadStatus::unsupported, "unsupported"},
     {ReadStatus::gone, "gone"},
     {ReadStatus::timeout, "timeout"},
     {ReadStatus::denied, "denied"},
     {ReadStatus::failed, "failed"},
     {ReadStatus::out_of_range, "out_of_range"}}};
constexpr std::string_view to_string(ReadStatus status) noexcept { return kReadStatusNames.of(status); }

struct Sample {
  double value;
  ReadStatus status;

  static constexpr Sample of(double value) noexcept { return {value, ReadStatus::ok}; }
  static constexpr Sample miss(ReadStatus why) noexcept { return {0, why}; }
};

using ReadErrors = std::array<std::uint64_t, kReadStatusCount>;

constexpr void add_errors(ReadErrors& sum, const ReadErrors& errors) noexcept {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += errors[i];
}

/// One device's slots: a view of its frame. One writer, the device's lane. Never allocates.
class SampleSink {
 public:
  SampleSink(std::span<double> values, std::span<ReadStatus> statuses) noexcept
      : values_(values), statuses_(statuses) {}

  void set(std::size_t slot, double value) noexcept {
    values_[slot] = value;
    statuses_[slot] = ReadStatus::ok;
  }
  void miss(std::size_t slot, ReadStatus why) noexcept { statuses_[slot] = why; }

  /// Counts one failed read, which may affect several slots or, for a counter, none yet.
  void count_error(ReadStatus why) noexcept { ++errors_[static_cast<std::size_t>(why)]; }
  const ReadErrors& errors() const noexcept { return errors_; }

 private:
  std::span<double> values_;
  std::span<ReadStatus> statuses_;
  ReadErrors errors_{};
};

}  // namespace gpumeter
