#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "tests/fakes/nvml/value.hpp"

namespace gpumeter::fake_nvml {

/// A value of a scenario as a function of the seconds since the first nvmlInit_v2.
class ValueOverTime {
 public:
  struct Rate {
    Number from, per_second;
    unsigned bits = 0;  ///< the counter wraps at this many bits; 0: never
  };
  struct Step;
  struct Square {
    Number period, duty, high, low;
  };
  struct Integral {
    std::shared_ptr<const ValueOverTime> of;
    Number scale, from;
  };
  using Form = std::variant<Value, Rate, std::vector<Step>, Square, Integral>;

  explicit ValueOverTime(Form form);

  Value at(double seconds) const;

  /// The integral from 0 to `seconds`, exact for each form. Errors, text, nan and inf count as 0. Throws for
  /// an integral of an integral, or of a counter that wraps.
  Number integral(double seconds) const;

 private:
  Form form_;
};

/// Steps are in order of time. Before the first step, the value is that of the first step.
struct ValueOverTime::Step {
  double since;
  ValueOverTime value;
};

}  // namespace gpumeter::fake_nvml
