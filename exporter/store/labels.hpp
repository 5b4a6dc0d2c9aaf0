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

/// The label pairs of a series, in the order given. Interned: equal sets share one copy, so a comparison and
/// a copy handle one address only. The values are raw bytes; each view does its own escaping. Immutable. Any
/// thread.
class Labels {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;  ///< name, value

  /// Order of series that belong to no device: they follow all devices.
  static constexpr unsigned kNoDevice = std::numeric_limits<unsigned>::max();

  Labels() noexcept = default;
  /// Omits pairs with an empty value, because Prometheus treats such labels as absent. If a name occurs
  /// twice, its first value counts.
  explicit Labels(std::span<const Label> pairs) : Labels(Labels().with(pairs)) {}
  Labels(std::initializer_list<Label> pairs) : Labels(std::span<const Label>(pairs)) {}
  /// The labels of one device. `name` is the name that the operator gave it.
  Labels(const DeviceInfo& device, unsigned index, std::string_view name, const DeviceLabels& which = {});

  Labels(const Labels& other) noexcept;
  Labels(Labels&& other) noexcept : set_(std::exchange(other.set_, nullptr)) {}
  Labels& operator=(Labels other) noexcept {
    std::swap(set_, other.set_);
    return *this;
  }
  ~Labels();

  /// These labels followed by `pairs`. A name that is already present keeps its value. For example, gpu_info
  /// has its own `serial`, and the config may have made `serial` a device label.
  Labels with(std::span<const Label> pairs) const;
  Labels with(std::initializer_list<Label> pairs) const { return with(std::span<const Label>(pairs)); }

  /// The views are valid as long as this object.
  std::vector<Pair> pairs() const;
  /// The device's index, which sorts the series of a family; kNoDevice if there is no device.
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
