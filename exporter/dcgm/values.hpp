#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exporter/dcgm/picture.hpp"
#include "exporter/dcgm/rows.hpp"

namespace gpumeter::dcgm {

/// A card's value of one row, in gpumeter's base unit.
struct Value {
  std::string partition = {};  ///< "1g.18gb:7"; empty: the card as a whole
  double value = 0;
};

/// Empty if the card does not report it.
std::vector<Value> values_of(const Row& row, const Picture& picture, std::string_view uuid);

}  // namespace gpumeter::dcgm
