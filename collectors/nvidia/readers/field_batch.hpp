#pragma once

#include <cstddef>
#include <vector>

#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/abi.hpp"

namespace gpumeter::nvidia {

class NvmlCaller;

/// The field values that one tier reads from a GPU, in one call per pass: the driver serves fields of the
/// same source together. Lane thread.
class FieldBatch {
 public:
  /// At attach: adds a field and returns its place for read(). `scope`: a link, or the scope of a power
  /// reading.
  int add(unsigned field, unsigned scope);

  /// Drops the values, so that the next read() calls the driver.
  void begin_pass() noexcept { is_fresh_ = false; }

  Sample read(NvmlCaller& caller, int place) noexcept;

 private:
  std::vector<nvml::FieldValue> values_;
  unsigned result_ = 0;  // result of the whole call
  bool is_fresh_ = false;
};

/// One field read by itself, to determine whether the device has it and how wide it is.
struct FieldReading {
  Sample sample;
  nvml::ValueType type;
};
FieldReading read_field(NvmlCaller& caller, unsigned field, unsigned scope) noexcept;

/// A union's value, by the type that the driver returns with it.
double number_of(const nvml::Value& value, nvml::ValueType type) noexcept;

}  // namespace gpumeter::nvidia
