#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/sources/page/families.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter::pages {

/// The owner of a file, who answers for what it says.
struct Author {
  std::uint32_t uid = 0;
  std::string name;         ///< or the uid in digits
  bool is_trusted = false;  ///< root or a program of gpumeter: may use every name, and has no label `author`
  bool operator==(const Author&) const = default;
};

/// The labels `gpu` and `uuid` of each device.
using Devices = std::vector<std::pair<std::string, std::string>>;

/// A page with the labels that its series get here.
struct Page {
  struct Family {
    std::string name;
    std::optional<std::string> help;
    MetricType type;
    std::size_t line;
  };
  struct Series {
    std::size_t family;
    Labels labels;
    Labels key;  ///< sorted and without `le` and `quantile`: equal for the parts of one metric, whatever
                 ///< their order
    SeriesPart part;
    double value;
    std::size_t line;
  };
  std::vector<Family> families;
  std::vector<Series> series;
  std::optional<Duration> expires;
};

/// Adds the author's label and completes `gpu` and `uuid` from each other where the device is known. Wrong
/// are names and labels by which this author would speak for gpumeter, for Prometheus or for another user.
Page page_of(PageText text, const Author& author, const Devices& devices, std::optional<BadLine>& wrong);

}  // namespace gpumeter::pages
