#include "collectors/intel/ras/client.hpp"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "collectors/intel/ras/message.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel::ras {
namespace {

struct CardNode {
  std::uint32_t id;
  std::size_t severity;
};

/// One socket of the kernel's generic netlink.
class Conversation {
 public:
  Conversation() : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)) {
    constexpr timeval kAtMost{1, 0};
    ::setsockopt(socket_.number(), SOL_SOCKET, SO_RCVTIMEO, &kAtMost, sizeof(kAtMost));
  }

  std::uint32_t next() noexcept { return ++sequence_; }

  /// Sends the request and hands each message of the answer to `take`. Returns an errno, 0 for success.
  int ask(const std::vector<std::byte>& request, const TakeAttributes& take) {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    const ssize_t sent = ::sendto(socket_.number(), request.data(), request.size(), 0,
                                  reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel));
    if (sent < 0) return errno;
    for (;;) {
      const ssize_t size = ::recv(socket_.number(), buffer_.data(), buffer_.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
      const End end = walk(std::span(buffer_).first(static_cast<std::size_t>(size)), sequence_, take);
      if (end.is_done) return end.error;
    }
  }

 private:
  Descriptor socket_;
  std::uint32_t sequence_ = 0;
  std::array<std::byte, 16384> buffer_{};  // the kernel's datagrams have half of it at most
};

std::vector<CardNode> nodes_of(Conversation& kernel, std::uint16_t family, const std::string& pci_address,
                               int& error) {
  std::vector<CardNode> nodes;
  error = kernel.ask(nodes_request(family, kernel.next()), [&](std::span<const std::byte> attributes) {
    const std::optional<Node> node = node_of(attributes);
    const auto severity = node ? severity_of(node->name) : std::nullopt;
    if (severity && is_of(node->device, pci_address)) nodes.push_back({node->id, *severity});
  });
  return nodes;
}

/// A kernel without the family answers ENOENT.
ReadStatus status_of(int error) noexcept {
  if (error == ENOENT) return ReadStatus::unsupported;
  return error == 0 ? ReadStatus::ok : sysfs::status_of(error);
}

Counts counts_of(const std::string& pci_address) {
  Conversation kernel;
  std::optional<std::uint16_t> family;
  int error = kernel.ask(family_request(kernel.next()), [&](std::span<const std::byte> attributes) {
    if (!family) family = family_of(attributes);
  });
  Counts counts;
  counts.status = status_of(error);
  if (error != 0 || !family) return counts;
  const std::vector<CardNode> nodes = nodes_of(kernel, *family, pci_address, error);
  for (const CardNode& node : nodes) {
    if (error != 0) break;
    error = kernel.ask(counters_request(*family, node.id, kernel.next()),
                       [&](std::span<const std::byte> attributes) {
                         if (const auto counter = counter_of(attributes)) {
                           counts.add(node.severity, counter->name, static_cast<double>(counter->value));
                         }
                       });
  }
  counts.status = error == 0 && nodes.empty() ? ReadStatus::unsupported : status_of(error);
  return counts;
}

}  // namespace

Counts read_counts(const std::string& pci_address) noexcept try {
  return counts_of(pci_address);
} catch (const std::exception&) {  // out of memory
  Counts counts;
  counts.status = ReadStatus::failed;
  return counts;
}

}  // namespace gpumeter::intel::ras
