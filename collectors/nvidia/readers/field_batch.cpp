#include "collectors/nvidia/readers/field_batch.hpp"

#include <cmath>

#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/nvidia/nvml/return_code.hpp"

namespace gpumeter::nvidia {
namespace {

Sample sample_of(const nvml::FieldValue& field) noexcept {
  const ReadStatus status = status_of(field.result);
  if (status != ReadStatus::ok) return Sample::miss(status);
  const double value = number_of(field.value, field.type);
  return std::isfinite(value) ? Sample::of(value) : Sample::miss(ReadStatus::out_of_range);
}

unsigned ask(NvmlCaller& caller, nvml::FieldValue* fields, std::size_t count) noexcept {
  return caller.call<&NvmlFunctions::nvmlDeviceGetFieldValues>(static_cast<int>(count), fields);
}

}  // namespace

int FieldBatch::add(unsigned field, unsigned scope) {
  nvml::FieldValue value{};
  value.field = field;
  value.scope = scope;
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

Sample FieldBatch::read(NvmlCaller& caller, int place) noexcept {
  if (!is_fresh_) result_ = ask(caller, values_.data(), values_.size());
  is_fresh_ = true;
  if (const ReadStatus status = status_of(result_); status != ReadStatus::ok) return Sample::miss(status);
  const nvml::FieldValue& field = values_[static_cast<std::size_t>(place)];
  caller.blame(field.result);
  return sample_of(field);
}

FieldReading read_field(NvmlCaller& caller, unsigned field, unsigned scope) noexcept {
  nvml::FieldValue value{};
  value.field = field;
  value.scope = scope;
  const ReadStatus status = status_of(ask(caller, &value, 1));
  caller.blame(value.result);
  return {status == ReadStatus::ok ? sample_of(value) : Sample::miss(status), value.type};
}

double number_of(const nvml::Value& value, nvml::ValueType type) noexcept {
  switch (type) {
    case nvml::ValueType::real:
      return value.as_double;
    case nvml::ValueType::uint:
      return value.as_uint;
    case nvml::ValueType::ulong:
    case nvml::ValueType::ulonglong:
      return static_cast<double>(value.as_ulong);
    case nvml::ValueType::longlong:
      return static_cast<double>(value.as_longlong);
    case nvml::ValueType::sint:
      return value.as_int;
    case nvml::ValueType::ushort:
      return value.as_ushort;
  }
  return static_cast<double>(value.as_ulong);
}

}  // namespace gpumeter::nvidia
