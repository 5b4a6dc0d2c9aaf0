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
    unsigned bits = 0;  ///< at which it wraps; 0: never
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

  /// Of the value from 0 to `seconds`, exact for each form; errors, text, nan and inf count as 0. Throws for
  /// an integral of an integral, or of a counter that wraps.
  Number integral(double seconds) const;

 private:
  Form form_;
};

/// Steps are in order of time; before the first one the value is the first one's.
struct ValueOverTime::Step {
  double since;
  ValueOverTime value;
};

}  // namespace gpumeter::fake_nvml
