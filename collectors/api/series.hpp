#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/descriptor.hpp"

namespace gpumeter {

struct Label {
  std::string name;
  std::string value;  ///< unescaped; any bytes, the exporter makes them valid UTF-8

  bool operator==(const Label&) const = default;
};

/// One time series: a family and its labels besides the device's own. Its position in its list is its slot in
/// the device's frame.
struct SeriesSpec {
  const MetricDescriptor* family;
  std::vector<Label> labels;
};

/// A slice of a device (AMD compute partition, MIG instance); its series are gpu_partition_*.
struct Partition {
  std::string name;          ///< value of its label `partition`: "<profile>:<id>", such as "cpx:3"
  std::vector<Label> facts;  ///< for gpu_partition_info
  std::string identity;      ///< differs if another partition had this name before
  /// Parts that share the partition's series (MIG compute instances). Each part has its own
  /// gpu_partition_info, with `facts` and its labels here.
  std::vector<std::vector<Label>> parts{};

  bool operator==(const Partition&) const = default;
};

/// Label pairs of a row in a constexpr table; unused places stay empty.
struct LabelSet {
  struct Pair {
    std::string_view name, value;
  };
  std::array<Pair, 3> pairs{};

  constexpr LabelSet() = default;
  constexpr LabelSet(std::string_view name, std::string_view value) : pairs{{{name, value}, {}, {}}} {}
  constexpr LabelSet(std::string_view name, std::string_view value, std::string_view name2,
                     std::string_view value2)
      : pairs{{{name, value}, {name2, value2}, {}}} {}
  constexpr LabelSet(std::string_view name, std::string_view value, std::string_view name2,
                     std::string_view value2, std::string_view name3, std::string_view value3)
      : pairs{{{name, value}, {name2, value2}, {name3, value3}}} {}

  constexpr bool operator==(const LabelSet& other) const noexcept {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].name != other.pairs[i].name || pairs[i].value != other.pairs[i].value) return false;
    }
    return true;
  }
  std::vector<Label> labels() const {
    std::vector<Label> result;
    for (const Pair& pair : pairs) {
      if (!pair.name.empty()) result.push_back({std::string(pair.name), std::string(pair.value)});
    }
    return result;
  }
};

}  // namespace gpumeter
