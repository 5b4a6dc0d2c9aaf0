#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/store/store.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter::dcgm {

/// A series copied from the store.
class Sample {
 public:
  Sample(const Labels& labels, double value) : labels_(labels), pairs_(labels_.pairs()), value_(value) {}

  /// Empty if there is no such label.
  std::string_view label(std::string_view name) const noexcept;
  double value() const noexcept { return value_; }

 private:
  Labels labels_;
  std::vector<Labels::Pair> pairs_;  ///< views of the shared copy of labels_
  double value_;
};

/// The families that dcgm-exporter's metrics are made from, as they are at one moment, by family and card. It
/// is a copy, so that no commit waits for the text.
class Picture {
 public:
  using Samples = std::vector<Sample>;

  Picture(const Store& store, const Filter& filter);

  /// All series of the family, in the store's order.
  const Samples& of(std::string_view family) const;
  /// Those of one card.
  const Samples& of(std::string_view family, std::string_view uuid) const;
  /// The store's generation.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  void copy(const Family& family, const Filter& filter);

  std::map<std::string, Samples, std::less<>> families_;
  std::map<std::pair<std::string, std::string>, Samples> of_cards_;
  std::uint64_t generation_ = 0;
};

/// The name of the family that has a divided card's instances: gpu_X becomes gpu_partition_X.
std::string partition_family(std::string_view family);

}  // namespace gpumeter::dcgm
