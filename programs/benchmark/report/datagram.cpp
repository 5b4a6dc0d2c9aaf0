#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/descriptor.hpp"
#include "programs/benchmark/report/report.hpp"

namespace gpumeter::benchmark {
namespace {

/// No uuid has them; with one of them, a line would say something else.
constexpr std::string_view kSeparators = ",|#\n";

std::string number(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string tags_of(const Measurement& each) {
  switch (each.quantity) {
    case Quantity::flops:
      return ",dtype:" + each.kind + ",backend:" + each.backend;
    case Quantity::memory_bandwidth:
      return ",operation:" + each.kind;
    case Quantity::transfer:
      return ",direction:" + each.kind;
  }
  return {};
}

}  // namespace

std::string datagram(const Report& report) {
  if (report.gpu.uuid.empty() || report.gpu.uuid.find_first_of(kSeparators) != std::string::npos) return {};
  if (report.status != Status::ok && report.status != Status::failed) return {};
  const std::string device = "|g|#uuid:" + report.gpu.uuid;
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value, const std::string& tags = {}) {
    text += "gpu.benchmark." + std::string(name) + ":" + value + device + tags + "\n";
  };
  if (report.status == Status::ok) {
    for (const Measurement& each : report.outcome.measurements)
      add(kQuantityNames.of(each.quantity), number("%.6g", each.value), tags_of(each));
  }
  add("failed", report.status == Status::failed ? "1" : "0");
  add("timestamp", number("%.3f", report.timestamp));
  return text;
}

Result<Done> send_to(const std::string& socket_path, const std::string& datagram) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof name.sun_path) return Error(socket_path + ": the path is too long");
  socket_path.copy(name.sun_path, sizeof name.sun_path - 1);
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket && sendto(socket.number(), datagram.data(), datagram.size(), MSG_NOSIGNAL,
                       reinterpret_cast<const sockaddr*>(&name), sizeof name) >= 0)
    return Done{};
  return Error(socket_path + ": " + std::generic_category().message(errno));
}

}  // namespace gpumeter::benchmark
