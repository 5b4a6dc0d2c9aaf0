#pragma once

#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/device_labels.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

/// The label pairs of a series, in the order in which they were given. Interned: equal sets share one copy,
/// so that a comparison compares two addresses and a copy copies one. The values are raw bytes; each view
/// escapes them its own way. Immutable. Any thread.
class Labels {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;  ///< name, value

  /// Order of series that belong to no device: after all devices.
  static constexpr unsigned kNoDevice = std::numeric_limits<unsigned>::max();

  Labels() noexcept = default;
  /// Leaves out pairs with an empty value: to Prometheus these labels do not exist. If a name occurs twice,
  /// its first value counts.
  explicit Labels(std::span<const Label> pairs) : Labels(Labels().with(pairs)) {}
  Labels(std::initializer_list<Label> pairs) : Labels(std::span<const Label>(pairs)) {}
  /// The labels of one device. `name` is the operator's name for it.
  Labels(const DeviceInfo& device, unsigned index, std::string_view name, const DeviceLabels& which = {});

  Labels(const Labels& other) noexcept;
  Labels(Labels&& other) noexcept : set_(std::exchange(other.set_, nullptr)) {}
  Labels& operator=(Labels other) noexcept {
    std::swap(set_, other.set_);
    return *this;
  }
  ~Labels();

  /// These and then `pairs`. A name that these have already keeps its value: gpu_info has a `serial` of its
  /// own, and the config may have made `serial` a device label.
  Labels with(std::span<const Label> pairs) const;
  Labels with(std::initializer_list<Label> pairs) const { return with(std::span<const Label>(pairs)); }

  /// The views are valid as long as these Labels.
  std::vector<Pair> pairs() const;
  /// The device's index, by which the series of a family are sorted; kNoDevice without a device.
  unsigned order() const noexcept;
  /// The address of the shared copy.
  const void* id() const noexcept { return set_; }

  bool operator==(const Labels& other) const noexcept { return set_ == other.set_; }

 private:
  struct Set;
  class Table;
  explicit Labels(const Set* set) noexcept : set_(set) {}
  static Labels interned(const Labels& base, unsigned order, std::string_view own);

  const Set* set_ = nullptr;
};

}  // namespace gpumeter
