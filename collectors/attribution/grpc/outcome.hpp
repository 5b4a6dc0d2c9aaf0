#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_names.hpp"

namespace gpumeter::grpc {

/// The reason why a call failed. The label `reason` of gpumeter_names_source_errors_total.
enum class Failure : std::uint8_t {
  none,           ///< the call succeeded, or has not ended yet
  unavailable,    ///< no socket, no permission, or the server closed the connection or reset the call
  timeout,        ///< no answer within the deadline
  rate_limited,   ///< RESOURCE_EXHAUSTED: the kubelet's limit counts the calls of all its clients
  not_ready,      ///< FAILED_PRECONDITION or UNAVAILABLE: the kubelet has just started
  unimplemented,  ///< UNIMPLEMENTED: the server lacks the method
  refused,        ///< any other status
  malformed,      ///< not HTTP/2, not gRPC, not the expected message, or longer than the limit
};
inline constexpr std::size_t kFailureCount = 8;
inline constexpr EnumNames<Failure, kFailureCount> kFailureNames = {
    {{Failure::none, "none"},
     {Failure::unavailable, "unavailable"},
     {Failure::timeout, "timeout"},
     {Failure::rate_limited, "rate_limited"},
     {Failure::not_ready, "not_ready"},
     {Failure::unimplemented, "unimplemented"},
     {Failure::refused, "refused"},
     {Failure::malformed, "malformed"}}};
constexpr std::string_view to_string(Failure failure) noexcept { return kFailureNames.of(failure); }

/// How a call ended.
struct Outcome {
  Failure failure = Failure::none;
  std::string message = {};  ///< for the log: printable, short; empty if the call succeeded

  explicit operator bool() const noexcept { return failure == Failure::none; }
  bool operator==(const Outcome&) const = default;
};

/// The outcome of a status of google.rpc.Code, with the server's message.
Outcome outcome_of(unsigned status, std::string_view message);

}  // namespace gpumeter::grpc
