#pragma once

#include <string>
#include <utility>
#include <variant>

namespace gpumeter {

/// Why something could not be done, in words for a person, with the context it happened in.
class Error {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}

  const std::string& message() const noexcept { return message_; }
  /// The same error seen from one level up: "nvidia: libnvidia-ml.so.1: not found".
  Error with(const std::string& context) const { return Error(context + ": " + message_); }

 private:
  std::string message_;
};

/// A value or an Error. Errors are values here: exceptions stay inside the one function that calls a
/// library which throws. (C++20 has no std::expected.)
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

/// What a Result holds when success has nothing to say.
using Done = std::monostate;

}  // namespace gpumeter
