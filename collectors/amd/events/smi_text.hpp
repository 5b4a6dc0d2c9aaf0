#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "collectors/amd/events/card_events.hpp"

namespace gpumeter::amd {

/// Parses one line of the driver's event stream, "NUMBER DETAILS" with a hexadecimal number (kernel 6.12,
/// kfd_smi_events.c, kfd_smi_event_add). Returns the place in kEvents; nullopt for any other event. Any
/// bytes.
std::optional<std::size_t> parse_smi_line(std::string_view line) noexcept;

/// Splits the stream of one event descriptor into lines. A read may end within a line, because the driver
/// copies as many bytes as fit. One thread.
class SmiStream {
 public:
  /// The driver's longest message has 96 bytes (KFD_SMI_EVENT_MSG_SIZE). Of a longer line the rest is
  /// dropped.
  static constexpr std::size_t kLongestLine = 256;

  /// Calls `take(place)` for each known event of the completed lines.
  template <class Take>
  void add(std::string_view bytes, const Take& take) {
    for (const char c : bytes) {
      if (c != '\n') {
        if (size_ < line_.size()) line_[size_++] = c;
        continue;
      }
      if (const auto place = parse_smi_line({line_.data(), size_})) take(*place);
      size_ = 0;
    }
  }

 private:
  std::array<char, kLongestLine> line_{};
  std::size_t size_ = 0;
};

}  // namespace gpumeter::amd
