#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collectors/api/device.hpp"
#include "collectors/api/series.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

/// Label pairs as they stand between the braces, escaped once: `gpu="0",uuid="..."`. Their order is the
/// order they were given in, and never changes: parsers cache line prefixes.
class LabelBlock {
 public:
  /// Order of series that belong to no device: after all devices.
  static constexpr unsigned kNoDevice = std::numeric_limits<unsigned>::max();

  LabelBlock() = default;
  explicit LabelBlock(std::span<const Label> labels) { add(labels); }
  /// The labels of one device. `name` is the operator's word for it; what is empty has no label.
  LabelBlock(const DeviceInfo& device, unsigned index, std::string_view name, const DeviceLabels& which = {});

  /// These and then `labels`. A name that is there already keeps its first value: gpu_info has its own
  /// `serial`, which the config may have made a device label too.
  LabelBlock with(std::span<const Label> labels) const;

  std::string_view text() const noexcept { return text_; }
  /// The device's index, which lines of a family are sorted by; kNoDevice without a device.
  unsigned order() const noexcept { return order_; }

 private:
  void add(std::span<const Label> labels);
  void add(std::string_view name, std::string_view value);
  bool has(std::string_view name) const noexcept;

  std::string text_;
  unsigned order_ = kNoDevice;
};

}  // namespace gpumeter
