#include "tests/fakes/nvml/call.hpp"
#include "tests/fakes/nvml/names.hpp"

namespace gpumeter::fake_nvml {
namespace {

using nvml::ValueType;

constexpr unsigned kFieldsKnown = 303;  // NVML_FI_MAX of header 13.3.29; `layouts: {fields: N}` lowers it

constexpr std::string_view kTypes[] = {"double", "uint", "ulong", "ulonglong", "longlong", "int", "ushort"};

/// `scopes`: a scope's own value, `all` for all links, `each` for any existing link. A plain value, or
/// `value`, applies to the whole GPU: scope 0 and all links.
const ValueOverTime* value_of(const Call& call, const std::string& path, unsigned scope) {
  const bool is_whole = scope == 0 || scope == nvml::kAllLinks;
  if (const auto* plain = call.find(path)) return is_whole ? plain : nullptr;
  if (!call.says_below(path)) return nullptr;
  const std::string scopes = path + ".scopes.";
  const std::string own_name = scope == nvml::kAllLinks ? "all" : std::to_string(scope);
  if (const auto* own = call.find(scopes + own_name)) return own;
  unsigned links = nvml::kMostLinks;
  call.read("nvlink.count", &links);
  const auto* each = scope < links ? call.find(scopes + "each") : nullptr;
  return each == nullptr && is_whole ? call.find(path + ".value") : each;
}

ValueType type_of(const Call& call, const std::string& path, unsigned field) {
  const Value said = call.at(path + ".type");
  for (unsigned i = 0; i < std::size(kTypes); ++i) {
    if (said.error == nvml::kSuccess && said.text == kTypes[i]) return static_cast<ValueType>(i);
  }
  return type_of_field(field);
}

void store(const Value& value, nvml::FieldValue& out) {
  out.value.as_ulong = 0;
  switch (out.type) {
    case ValueType::real:
      out.value.as_double = to<double>(value);
      break;
    case ValueType::uint:
      out.value.as_uint = to<unsigned>(value);
      break;
    case ValueType::ulong:
    case ValueType::ulonglong:
      out.value.as_ulong = to<std::uint64_t>(value);
      break;
    case ValueType::longlong:
      out.value.as_longlong = to<std::int64_t>(value);
      break;
    case ValueType::sint:
      out.value.as_int = to<int>(value);
      break;
    case ValueType::ushort:
      out.value.as_ushort = to<std::uint16_t>(value);
      break;
  }
}

void answer(const Call& call, unsigned known, nvml::FieldValue& out) {
  const std::int64_t epoch = Library::instance().clock.epoch_usec();
  out.timestamp = epoch + static_cast<std::int64_t>(call.now() * 1e6);
  out.latency_usec =
      static_cast<std::int64_t>(call.facts().latency_ms("nvmlDeviceGetFieldValues", call.now()) * 1e3);
  if (out.field == 0 || out.field >= known) {
    out.result = nvml::kInvalidArgument;
    return;
  }
  const std::string path = "fields." + std::to_string(out.field);
  const auto* found = value_of(call, path, out.scope);
  const Value value = found == nullptr ? Value{.error = nvml::kNotSupported} : found->at(call.now());
  out.result = value.error;
  if (value.error != nvml::kSuccess) return;
  out.type = type_of(call, path, out.field);
  store(value, out);
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlDeviceGetFieldValues(nvml::Device device, int count, nvml::FieldValue* values) {
  return on_device("nvmlDeviceGetFieldValues", device, [&](const Call& call) -> unsigned {
    if (values == nullptr || count <= 0) return nvml::kInvalidArgument;
    const unsigned known = call.scenario().layout("fields", kFieldsKnown);
    for (int i = 0; i < count; ++i) answer(call, known, values[i]);
    return nvml::kSuccess;
  });
}

}  // namespace gpumeter::fake_nvml
