#pragma once

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "config/codec.hpp"
#include "config/config.hpp"

/// The rows of the table in keys.cpp. They are constants: a function per key would be 100 kB of code.
namespace gpumeter::config {

/// The type of a member of the configuration, or of a member of one of its sections.
template <auto... kMembers>
using MemberType = std::remove_cvref_t<decltype((std::declval<Config&>().*....*kMembers))>;

template <class T>
using CheckOf = Complaint (*)(const T&);
/// Validates a value beyond its type; monostate: every value of the type is valid.
using Check = std::variant<std::monostate, CheckOf<std::string>, CheckOf<unsigned>, CheckOf<Duration>,
                           CheckOf<std::vector<std::string>>, CheckOf<std::map<std::string, std::string>>>;

/// How values of one type are read, shown and named: one instance per type, not per key.
struct ValueType {
  std::string (*words)();
  bool is_list;
  Complaint (*read)(const Node& node, const Check& check, void* place);
  std::string (*show)(const void* place);
};

template <class T>
Complaint read_checked(const Node& node, const Check& check, void* place) {
  T value{};
  Complaint complaint = read(node, value);
  if constexpr (std::is_constructible_v<Check, CheckOf<T>>) {
    const auto* const validate = std::get_if<CheckOf<T>>(&check);
    if (!complaint && validate != nullptr) complaint = (*validate)(value);
  }
  if (!complaint) *static_cast<T*>(place) = std::move(value);
  return complaint;
}

template <class T>
inline constexpr ValueType kValueType = {
    [] { return type_words(T{}); },
    std::is_same_v<T, std::vector<std::string>> || std::is_same_v<T, DeviceLabels>, read_checked<T>,
    [](const void* place) { return show(*static_cast<const T*>(place)); }};

/// A key with a member of its own in the configuration.
struct FixedKey {
  std::string_view path;
  bool reloadable;
  std::string_view help;
  const void* (*place)(const Config& config);  ///< the member
  const ValueType* type;
  Check check;
};

template <class T>
constexpr Check erased(std::string_view path, CheckOf<T> check) {
  if (check == nullptr) return {};
  if constexpr (std::is_constructible_v<Check, CheckOf<T>>) return check;
  throw path;  // the table does not compile: add the type to Check
}

template <auto... kMembers>
constexpr FixedKey row(std::string_view path, bool reloadable, std::string_view help,
                       CheckOf<MemberType<kMembers...>> check = nullptr) {
  using T = MemberType<kMembers...>;
  const auto place = [](const Config& config) -> const void* { return &(config.*....*kMembers); };
  return {path, reloadable, help, place, &kValueType<T>, erased<T>(path, check)};
}

}  // namespace gpumeter::config
