#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace gpumeter::fake_nvml {

/// Names of NVML's constants without their prefix. A "#" in the pattern represents `first` to `last`.
struct NumberedName {
  std::string_view pattern;
  unsigned first, last, id, step;
};

extern const NumberedName kFieldNames[];
extern const std::size_t kFieldNameCount;
extern const NumberedName kGpmNames[];
extern const std::size_t kGpmNameCount;

}  // namespace gpumeter::fake_nvml
