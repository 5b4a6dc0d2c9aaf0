#include "collectors/profiles/kineto_wire.hpp"

#include <algorithm>
#include <cstring>

namespace gpumeter::profiles::kineto {
namespace {

constexpr std::string_view kContext = "ctxt";
constexpr std::string_view kRequest = "req";
constexpr std::size_t kTypeBytes = 32;
constexpr std::size_t kContextBytes = 16;  // i32 gpu, i32 pid, i64 job
constexpr std::size_t kFixedBytes = 16;    // of a request: i32 type, i32 count, i64 job

// Kineto's type bits; until July 2026 there was also 1, events.
constexpr std::int32_t kActivities = 2;

constexpr auto kWarmUp = std::chrono::seconds(1);

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) noexcept {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string datagram(std::string_view type, std::string_view payload) {
  std::string bytes(kHeaderBytes, '\0');
  const std::uint64_t size = payload.size();
  std::memcpy(bytes.data(), &size, sizeof size);
  type.copy(bytes.data() + sizeof size, kTypeBytes);
  return bytes.append(payload);
}

std::string line(std::string_view key, std::int64_t value) {
  return std::string(key) + "=" + std::to_string(value) + "\n";
}

}  // namespace

std::optional<Message> parse(std::string_view datagram) noexcept {
  if (datagram.size() < kHeaderBytes) return std::nullopt;
  const std::string_view payload = datagram.substr(kHeaderBytes);
  if (number_at<std::uint64_t>(datagram, 0) != payload.size()) return std::nullopt;
  std::string_view type = datagram.substr(sizeof(std::uint64_t), kTypeBytes);
  type = type.substr(0, type.find('\0'));
  if (type == kContext) {
    if (payload.size() != kContextBytes) return std::nullopt;
    return Message{Message::Kind::context, false};
  }
  if (type != kRequest || payload.size() <= kFixedBytes) return std::nullopt;
  const auto count = number_at<std::int32_t>(payload, sizeof(std::int32_t));
  const std::size_t numbers = payload.size() - kFixedBytes;
  if (count < 1 || numbers / sizeof(std::int32_t) != static_cast<std::size_t>(count)) return std::nullopt;
  if (numbers % sizeof(std::int32_t) != 0) return std::nullopt;
  return Message{Message::Kind::request, (number_at<std::int32_t>(payload, 0) & kActivities) != 0};
}

std::string file_of(const std::string& path, int inner_pid) {
  constexpr std::string_view kEnd = ".json";
  return path.substr(0, path.size() - kEnd.size()) + "_" + std::to_string(inner_pid) + std::string(kEnd);
}

std::string answer(std::string_view text) { return datagram(kRequest, text); }

std::string answer_context(std::int32_t registered) {
  char bytes[sizeof registered];
  std::memcpy(bytes, &registered, sizeof registered);
  return datagram(kContext, {bytes, sizeof bytes});
}

// Without the warm-up's line Kineto waits 5 s before the trace begins. A process that never reports a step
// falls back to the duration.
std::string text_of(const Order& order, Nanoseconds unix) {
  const auto count = [](auto time) {
    return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(time).count());
  };
  std::string text = "ACTIVITIES_LOG_FILE=" + order.path + "\n";
  text += line("ACTIVITIES_WARMUP_PERIOD_SECS", kWarmUp.count());
  if (order.extent.steps) {
    text += line("PROFILE_START_ITERATION", 0) + line("PROFILE_START_ITERATION_ROUNDUP", 1) +
            line("ACTIVITIES_ITERATIONS", *order.extent.steps);
  } else {
    text += line("PROFILE_START_TIME", count(unix + kStartAfter));
  }
  return text + line("ACTIVITIES_DURATION_MSECS", count(order.extent.duration));
}

Nanoseconds least_time(const Extent& extent) noexcept {
  return extent.steps ? Nanoseconds(0) : kStartAfter + extent.duration;
}

Result<Done> check_path(std::string_view path) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '=' && c != '#'; };
  if (!path.starts_with('/')) return Error("the folder of the trace must be an absolute path");
  if (!std::ranges::all_of(path, is_plain) || path.find("..") != std::string_view::npos) {
    return Error("the path of the trace must be of printable ASCII characters without blanks, = # and ..");
  }
  // Kineto has no limit; this one keeps a datagram small.
  constexpr std::size_t kLongest = 400;
  if (path.size() > kLongest) return Error("the path of the trace is too long");
  return Done{};
}

}  // namespace gpumeter::profiles::kineto
