#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json/scalars.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "collectors/nvidia/nvml/session.hpp"

/// How a call of NVML becomes a key and a value of YAML.
namespace gpumeter::bundle {

namespace nvml = nvidia::nvml;
using nvidia::F;
using nvidia::NvmlCaller;

// NVML_ERROR_*, by number.
inline constexpr std::string_view kErrors =
    "success uninitialized invalid_argument not_supported no_permission already_initialized not_found "
    "insufficient_size insufficient_power driver_not_loaded timeout irq_issue library_not_found "
    "function_not_found corrupted_inforom gpu_is_lost reset_required operating_system "
    "lib_rm_version_mismatch in_use memory no_data vgpu_ecc_not_supported insufficient_resources "
    "freq_not_supported argument_version_mismatch deprecated not_ready gpu_not_found invalid_state "
    "reset_type_not_supported";

inline std::string error_value(unsigned result) {
  std::string_view rest = kErrors;
  std::string_view name = take_until(rest, ' ');
  for (; result > 0 && !name.empty(); --result) name = take_until(rest, ' ');
  return "{error: " + std::string(name.empty() ? "unknown" : name) + "}";
}

/// Whether the absence of the key says the same.
inline bool is_left_out(unsigned result) {
  return nvidia::is_lacking(nvidia::status_of(result)) && result != nvml::kNoPermission;
}

template <class Number>
std::string shown(Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return "inf";
    return json_number(number);
  } else {
    return std::to_string(number);
  }
}

inline std::string shown(nvml::ValueType type, const nvml::Value& value) {
  switch (type) {
    case nvml::ValueType::real:
      return shown(value.as_double);
    case nvml::ValueType::uint:
      return shown(value.as_uint);
    case nvml::ValueType::longlong:
      return shown(value.as_longlong);
    case nvml::ValueType::sint:
      return shown(value.as_int);
    case nvml::ValueType::ushort:
      return shown(value.as_ushort);
    default:
      return shown(value.as_ulong);
  }
}

/// "NAME: VALUE, ..." in braces; pairs without a value are left out.
inline std::string map_of(std::initializer_list<std::pair<const char*, std::string>> pairs) {
  std::vector<std::string> items;
  for (const auto& [name, value] : pairs)
    items.push_back(value.empty() ? "" : std::string(name) + ": " + value);
  return options::listed('{', items, '}');
}

inline std::string list_of(const std::vector<std::string>& items) { return options::listed('[', items, ']'); }

/// The answers of one GPU or MIG instance by the key of each, with the call that gave it. A first good answer
/// stays: newer calls are asked first.
struct Answers {
  struct Answer {
    std::string value;  ///< YAML
    std::string_view call;
    bool is_error = false;
  };
  std::map<std::string, Answer> by_key;
  std::vector<Answers> instances;       ///< of MIG
  std::vector<std::string> identities;  ///< values that name this one device or its machine

  std::string yaml(const std::string& indent) const;
};

/// One device or instance while it is asked. `call`: the last one, which may not have returned.
struct Asked {
  NvmlCaller gpu;
  Answers answers;
  std::shared_ptr<std::atomic<const char*>> call;
  unsigned result = nvml::kSuccess;  ///< of that call

  template <auto Function, class... Arguments>
  bool ask(const char* name, Arguments... arguments) {
    *call = name;
    result = gpu.call<Function>(arguments...);
    return result == nvml::kSuccess;
  }
  template <auto Function, class... Arguments>
  bool ask_plain(const char* name, Arguments... arguments) {
    *call = name;
    result = gpu.call_plain<Function>(arguments...);
    return result == nvml::kSuccess;
  }

  /// Stores what the last call returned.
  void put(const std::string& key, const std::string& value) {
    if (is_left_out(result)) return;
    const bool is_error = result != nvml::kSuccess;
    const auto known = answers.by_key.find(key);
    if (known != answers.by_key.end() && !known->second.is_error) return;
    answers.by_key[key] = {is_error ? error_value(result) : value, call->load(), is_error};
  }
  void put_identity(const std::string& key, const std::string& value) {
    put(key, json_quoted(value));
    if (result == nvml::kSuccess) answers.identities.push_back(value);
  }
  template <class... Values>
  void put_each(std::string_view keys, const Values&... values) {
    (put(std::string(take_until(keys, ' ')), shown(values)), ...);
  }
};

/// One call, and the keys of what it returns, with blanks between.
struct Row {
  const char* call;
  std::string_view keys;
  void (*ask)(Asked& asked, const Row& row);
};

template <class Function>
struct Returns;
template <class... Out>
struct Returns<unsigned (*nvidia::NvmlFunctions::*)(nvml::Device, Out*...)> {
  using Values = std::tuple<Out...>;
};
template <class Out>
struct Returns<unsigned (*nvidia::NvmlFunctions::*)(nvml::Device, unsigned, Out*)> {
  using Indexed = Out;
};

template <auto Function>
void text(Asked& asked, const Row& row) {
  std::array<char, 128> buffer{};
  asked.ask<Function>(row.call, buffer.data(), static_cast<unsigned>(buffer.size() - 1));
  asked.put(std::string(row.keys), json_quoted(buffer.data()));
}

template <auto Function>
void identity(Asked& asked, const Row& row) {
  std::array<char, 128> buffer{};
  asked.ask<Function>(row.call, buffer.data(), static_cast<unsigned>(buffer.size() - 1));
  asked.put_identity(std::string(row.keys), buffer.data());
}

template <auto Function>
void numbers(Asked& asked, const Row& row) {
  typename Returns<decltype(Function)>::Values values{};
  std::apply([&](auto&... each) { asked.ask<Function>(row.call, &each...); }, values);
  std::apply([&](const auto&... each) { asked.put_each(row.keys, each...); }, values);
}

template <auto Function, auto... Members>
void parts(Asked& asked, const Row& row) {
  std::tuple_element_t<0, typename Returns<decltype(Function)>::Values> out{};
  asked.ask<Function>(row.call, &out);
  asked.put_each(row.keys, out.*Members...);
}

/// The key's place is the call's second argument.
template <auto Function>
void indexed(Asked& asked, const Row& row) {
  unsigned index = 0;
  for (std::string_view keys = row.keys; !keys.empty(); ++index) {
    typename Returns<decltype(Function)>::Indexed value{};
    asked.ask<Function>(row.call, index, &value);
    asked.put_each(take_until(keys, ' '), value);
  }
}

}  // namespace gpumeter::bundle
