#include <arpa/inet.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/tcp/listeners.hpp"

namespace gpumeter::tcp {
namespace {

constexpr int kHex = 16;
constexpr std::size_t kMostListeners = 65536;
/// The kernel lists listening sockets before all others.
constexpr std::size_t kMostTable = 16U << 20U;
constexpr std::string_view kListen = "0A";  // TCP_LISTEN of include/net/tcp_states.h

std::string_view next_field(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return take_until(line, ' ');
}

// The words of an address are printed in the byte order of the machine.
std::string address_of(std::string_view address, bool is_ip6) {
  const char* const loopback = is_ip6 ? "::1" : "127.0.0.1";
  if (address.find_first_not_of('0') == std::string_view::npos) return loopback;
  const std::string_view last = address.substr(address.size() - std::min<std::size_t>(address.size(), 8));
  const std::string_view front = address.substr(0, address.size() - last.size());
  const auto word = parse_number<std::uint32_t>(last, kHex);
  if (!word) return {};
  if (is_ip6)
    return ntohl(*word) == 1 && front.find_first_not_of('0') == std::string_view::npos ? loopback : "";
  if (ntohl(*word) >> 24U != IN_LOOPBACKNET) return {};
  const in_addr v4{*word};
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &v4, text.data(), text.size());
}

std::optional<Listener> read_row(std::string_view line, bool is_ip6) {
  next_field(line);  // sl
  std::string_view local = next_field(line);
  next_field(line);  // rem_address
  if (next_field(line) != kListen) return std::nullopt;
  const std::string_view address = take_until(local, ':');
  const auto port = parse_number<std::uint16_t>(local, kHex);
  for (int i = 0; i < 3; ++i) next_field(line);  // queues, timer, retrnsmt
  const auto uid = parse_number<std::uint32_t>(next_field(line));
  next_field(line);  // timeout
  const auto inode = parse_number<std::uint64_t>(next_field(line));
  if (!port || !uid || !inode) return std::nullopt;
  return Listener{*port, address_of(address, is_ip6), *inode, *uid, 0};
}

Result<std::vector<Listener>> listeners_by_tables(const std::string& procfs) {
  const SmallFile v4 = read_small_file(procfs + "/net/tcp", kMostTable);
  const SmallFile v6 = read_small_file(procfs + "/net/tcp6", kMostTable);  // missing without IPv6
  if (v4.error != 0 && v6.error != 0) {
    return Error(procfs + "/net/tcp: " + std::generic_category().message(v4.error));
  }
  std::vector<Listener> found = listeners_in(v4.text, false);
  const std::vector<Listener> more = listeners_in(v6.text, true);
  found.insert(found.end(), more.begin(), more.end());
  return found;
}

}  // namespace

std::vector<Listener> listeners_in(std::string_view table, bool is_ip6) {
  std::vector<Listener> found;
  while (!table.empty() && found.size() < kMostListeners) {
    if (auto listener = read_row(take_until(table, '\n'), is_ip6)) found.push_back(*std::move(listener));
  }
  return found;
}

Result<std::vector<Listener>> listeners(const std::string& procfs) {
  struct statfs mounted {};
  const bool is_kernels = statfs(procfs.c_str(), &mounted) == 0 && mounted.f_type == PROC_SUPER_MAGIC;
  if (is_kernels) {
    if (Result<std::vector<Listener>> found = listeners_by_sock_diag()) return found;
  }
  return listeners_by_tables(procfs);
}

}  // namespace gpumeter::tcp
