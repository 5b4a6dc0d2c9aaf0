#include "collectors/nccl/listeners.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <optional>

#include "base/text.hpp"
#include "collectors/nccl/small_file.hpp"

namespace gpumeter::nccl {
namespace {

constexpr int kHex = 16;
constexpr std::size_t kMostListeners = 4096;
/// The kernel lists listening sockets before all others.
constexpr std::size_t kMostTable = 4U << 20U;
constexpr std::string_view kListen = "0A";  // TCP_LISTEN of include/net/tcp_states.h

std::string_view next_field(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return take_until(line, ' ');
}

// The words of an address are printed in the byte order of the machine.
bool is_reached(std::string_view address, int family) noexcept {
  const bool is_any = address.find_first_not_of('0') == std::string_view::npos;
  if (family == AF_INET) {
    std::string_view digits = address;
    const auto word = take_number<std::uint32_t>(digits, kHex);
    return is_any || (word && ntohl(*word) >> 24U == IN_LOOPBACKNET);
  }
  const std::string_view last = address.substr(address.size() - std::min<std::size_t>(address.size(), 8));
  std::string_view digits = last;
  const auto word = take_number<std::uint32_t>(digits, kHex);
  const std::string_view front = address.substr(0, address.size() - last.size());
  const bool is_one = word && ntohl(*word) == 1 && front.find_first_not_of('0') == std::string_view::npos;
  return is_any || is_one;
}

std::optional<Listener> read_row(std::string_view line, int family, std::uint16_t port) {
  next_field(line);  // sl
  std::string_view local = next_field(line);
  next_field(line);  // rem_address
  if (next_field(line) != kListen) return std::nullopt;
  const std::string_view address = take_until(local, ':');
  if (parse_number<std::uint16_t>(local, kHex) != port || !is_reached(address, family)) return std::nullopt;
  for (int i = 0; i < 3; ++i) next_field(line);  // queues, timer, retrnsmt
  const auto uid = parse_number<std::uint32_t>(next_field(line));
  next_field(line);  // timeout
  const auto inode = parse_number<std::uint64_t>(next_field(line));
  if (!uid || !inode) return std::nullopt;
  return Listener{family, *uid, *inode};
}

}  // namespace

std::vector<Listener> listeners_in(std::string_view table, int family, std::uint16_t port) {
  std::vector<Listener> found;
  while (!table.empty() && found.size() < kMostListeners) {
    if (const auto listener = read_row(take_until(table, '\n'), family, port)) found.push_back(*listener);
  }
  return found;
}

std::vector<Listener> read_listeners(const std::string& procfs, std::uint16_t port) {
  std::vector<Listener> found;
  for (const auto& [name, family] : {std::pair("tcp", AF_INET), std::pair("tcp6", AF_INET6)}) {
    const SmallFile table = read_small_file(procfs + "/net/" + name, kMostTable);
    const std::vector<Listener> rows = listeners_in(table.text, family, port);
    found.insert(found.end(), rows.begin(), rows.end());
  }
  return found;
}

std::set<std::string> own_addresses() {
  std::set<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const sockaddr* address = each->ifa_addr;
    if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) continue;
    const void* bytes =
        address->sa_family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
            : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (::inet_ntop(address->sa_family, bytes, text.data(), text.size()) != nullptr)
      addresses.insert(text.data());
  }
  ::freeifaddrs(first);
  return addresses;
}

}  // namespace gpumeter::nccl
