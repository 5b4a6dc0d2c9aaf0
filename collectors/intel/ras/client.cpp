#include "collectors/intel/ras/client.hpp"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

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

  /// Sends the request and hands the attributes of each message of the answer to `take`. Returns an errno, 0
  /// for success.
  template <class Take>
  int ask(const Request& request, Take take) noexcept {
    if (const int error = send(request.bytes()); error != 0) return error;
    for (;;) {
      const ssize_t size = ::recv(socket_.number(), buffer_.data(), buffer_.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
      const std::span<const std::byte> datagram(buffer_.data(), static_cast<std::size_t>(size));
      Messages messages(datagram, sequence_);
      while (const auto attributes = messages.next()) take(*attributes);
      if (messages.end().is_done) return messages.end().error;
    }
  }

 private:
  int send(std::span<const std::byte> request) const noexcept {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    const ssize_t sent = ::sendto(socket_.number(), request.data(), request.size(), 0,
                                  reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel));
    return sent < 0 ? errno : 0;
  }

  Descriptor socket_;
  std::uint32_t sequence_ = 0;
  std::array<std::byte, 16384> buffer_{};  // the kernel's datagrams have half of it at most
};

/// The nodes of one card: one per severity, or few.
struct CardNodes {
  std::array<CardNode, 8> nodes{};
  std::size_t count = 0;
};

int list_nodes(Conversation& kernel, std::uint16_t family, std::string_view pci_address,
               CardNodes& found) noexcept {
  return kernel.ask(nodes_request(family, kernel.next()), [&](std::span<const std::byte> attributes) {
    const std::optional<Node> node = node_of(attributes);
    const auto severity = node ? severity_of(node->name) : std::nullopt;
    if (!severity || !is_of(node->device, pci_address) || found.count == found.nodes.size()) return;
    found.nodes[found.count++] = {node->id, *severity};
  });
}

/// A kernel without the family answers ENOENT.
ReadStatus status_of(int error) noexcept {
  if (error == ENOENT) return ReadStatus::unsupported;
  return error == 0 ? ReadStatus::ok : sysfs::status_of(error);
}

int add_counters(Conversation& kernel, std::uint16_t family, const CardNode& node, Counts& counts) noexcept {
  return kernel.ask(counters_request(family, node.id, kernel.next()),
                    [&](std::span<const std::byte> attributes) {
                      if (const auto counter = counter_of(attributes)) {
                        counts.add(node.severity, counter->name, static_cast<double>(counter->value));
                      }
                    });
}

}  // namespace

Counts read_counts(std::string_view pci_address) noexcept {
  Conversation kernel;
  std::optional<std::uint16_t> family;
  int error = kernel.ask(family_request(kernel.next()), [&](std::span<const std::byte> attributes) {
    if (!family) family = family_of(attributes);
  });
  Counts counts;
  counts.status = status_of(error);
  if (error != 0 || !family) return counts;
  CardNodes found;
  error = list_nodes(kernel, *family, pci_address, found);
  for (std::size_t i = 0; i < found.count && error == 0; ++i) {
    error = add_counters(kernel, *family, found.nodes[i], counts);
  }
  counts.status = error == 0 && found.count == 0 ? ReadStatus::unsupported : status_of(error);
  return counts;
}

}  // namespace gpumeter::intel::ras
