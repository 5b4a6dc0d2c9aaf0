#include "collectors/attribution/grpc/outcome.hpp"

#include "base/text.hpp"

namespace gpumeter::grpc {
namespace {

// google/rpc/code.proto
constexpr unsigned kOk = 0;
constexpr unsigned kDeadlineExceeded = 4;
constexpr unsigned kResourceExhausted = 8;
constexpr unsigned kFailedPrecondition = 9;
constexpr unsigned kUnimplemented = 12;
constexpr unsigned kUnavailable = 14;

constexpr std::size_t kLongestMessage = 200;

Failure failure_of(unsigned status) noexcept {
  switch (status) {
    case kOk:
      return Failure::none;
    case kDeadlineExceeded:
      return Failure::timeout;
    case kResourceExhausted:
      return Failure::rate_limited;
    case kFailedPrecondition:
    case kUnavailable:
      return Failure::not_ready;
    case kUnimplemented:
      return Failure::unimplemented;
    default:
      return Failure::refused;
  }
}

}  // namespace

Outcome outcome_of(unsigned status, std::string_view message) {
  const Failure failure = failure_of(status);
  if (failure == Failure::none) return {};
  const std::string text = readable(first_bytes(message, kLongestMessage), is_control);
  return {failure, "status " + std::to_string(status) + (text.empty() ? "" : ": " + text)};
}

}  // namespace gpumeter::grpc
