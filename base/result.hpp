#pragma once

#include <string>
#include <utility>
#include <variant>

namespace gpumeter {

/// The reason of a failure with its context, for log lines and messages.
class Error {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}

  const std::string& message() const noexcept { return message_; }
  /// The error with one more level of context: "nvidia: libnvidia-ml.so.1: not found".
  Error with(const std::string& context) const { return Error(context + ": " + message_); }

 private:
  std::string message_;
};

/// A value or an Error. Functions that call a throwing library convert its exceptions to an Error. C++20 has
/// no std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  // NOLINTBEGIN(google-explicit-constructor): `return value;` and `return Error(..);` are the point.
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}
  // NOLINTEND(google-explicit-constructor)

  explicit operator bool() const noexcept { return std::holds_alternative<T>(state_); }
  T& operator*() & { return std::get<T>(state_); }
  const T& operator*() const& { return std::get<T>(state_); }
  T&& operator*() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }
  const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// The value type of a Result that reports only success.
using Done = std::monostate;

}  // namespace gpumeter
