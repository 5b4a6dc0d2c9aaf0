#include "collectors/intel/ras.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel::ras {
namespace {

// include/uapi/drm/drm_ras.h
constexpr std::uint8_t kListNodes = 1;
constexpr std::uint8_t kGetErrorCounter = 2;
constexpr std::uint8_t kVersion = 1;
constexpr std::uint16_t kNodeId = 1, kNodeDevice = 2, kNodeName = 3;
constexpr std::uint16_t kCounterNode = 1, kCounterName = 3, kCounterValue = 4;

// Each is a multiple of the padding.
constexpr std::size_t kMessageHeader = sizeof(nlmsghdr);
constexpr std::size_t kGenericHeader = sizeof(genlmsghdr);
constexpr std::size_t kAttributeHeader = sizeof(nlattr);

constexpr std::size_t padded(std::size_t size) noexcept { return (size + 3) & ~std::size_t{3}; }

template <class T>
bool copy_from(std::span<const std::byte> bytes, T& value) noexcept {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return true;
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

/// The value of the first attribute of that type; nullopt if there is none.
std::optional<std::span<const std::byte>> attribute(std::span<const std::byte> attributes,
                                                    std::uint16_t type) noexcept {
  nlattr header{};
  while (copy_from(attributes, header)) {
    if (header.nla_len < kAttributeHeader || header.nla_len > attributes.size()) return std::nullopt;
    if ((header.nla_type & NLA_TYPE_MASK) == type) {
      return attributes.subspan(kAttributeHeader, header.nla_len - kAttributeHeader);
    }
    attributes = attributes.subspan(std::min(padded(header.nla_len), attributes.size()));
  }
  return std::nullopt;
}

/// A number of the width that the attribute has.
std::optional<std::uint64_t> number(std::span<const std::byte> attributes, std::uint16_t type) noexcept {
  const auto value = attribute(attributes, type);
  std::uint16_t narrow = 0;
  std::uint32_t normal = 0;
  std::uint64_t wide = 0;
  if (!value) return std::nullopt;
  if (value->size() == sizeof(narrow) && copy_from(*value, narrow)) return narrow;
  if (value->size() == sizeof(normal) && copy_from(*value, normal)) return normal;
  if (value->size() == sizeof(wide) && copy_from(*value, wide)) return wide;
  return std::nullopt;
}

std::optional<std::string_view> text(std::span<const std::byte> attributes, std::uint16_t type) noexcept {
  const auto value = attribute(attributes, type);
  if (!value) return std::nullopt;
  const std::string_view all(reinterpret_cast<const char*>(value->data()), value->size());
  return all.substr(0, all.find('\0'));
}

constexpr std::int32_t kMostErrno = 4095;  // MAX_ERRNO, include/linux/err.h

/// The errno of struct nlmsgerr, whose first field is its negative.
int error_in(std::span<const std::byte> payload) noexcept {
  std::int32_t error = 0;
  if (!copy_from(payload, error) || error < -kMostErrno) return EPROTO;
  return error < 0 ? -error : 0;
}

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

// "uncorrectable-errors" contains "correctable".
std::optional<std::size_t> severity_of(std::string_view node) noexcept {
  const auto contains = [&](std::string_view word) { return node.find(word) != std::string_view::npos; };
  if (contains("uncorrectable") || contains("fatal")) return 1;
  if (contains("correctable")) return 0;
  return std::nullopt;
}

bool is_of(std::string_view node_device, std::string_view pci_address) noexcept {
  constexpr std::string_view kDomain = "0000:";
  if (node_device == pci_address) return true;
  return pci_address.starts_with(kDomain) && pci_address.substr(kDomain.size()) == node_device;
}

void Counts::add(std::size_t severity, std::string_view error, double value) noexcept {
  const auto* const known = std::ranges::find(kErrors, error, &ErrorName::key);
  if (known == std::end(kErrors) || severity >= values.size()) return;
  std::optional<double>& sum = values[severity][static_cast<std::size_t>(known - std::begin(kErrors))];
  sum = sum.value_or(0) + value;  // nodes for fatal and for other uncorrectable errors
}

Request::Request(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint8_t command,
                 std::uint8_t version) noexcept {
  nlmsghdr header{};
  header.nlmsg_len = kMessageHeader + kGenericHeader;
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  header.nlmsg_seq = sequence;
  append(bytes_of(header));
  const genlmsghdr generic{command, version, 0};
  append(bytes_of(generic));
}

Request& Request::add(std::uint16_t type, std::span<const std::byte> value) noexcept {
  if (bytes_.size() - size_ < kAttributeHeader + padded(value.size())) return *this;
  const nlattr attribute{static_cast<std::uint16_t>(kAttributeHeader + value.size()), type};
  append(bytes_of(attribute));
  append(value);
  const auto size = static_cast<std::uint32_t>(size_);
  std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &size, sizeof(size));
  return *this;
}

void Request::append(std::span<const std::byte> value) noexcept {
  std::copy(value.begin(), value.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
  size_ += padded(value.size());
}

Request family_request(std::uint32_t sequence) noexcept {
  std::array<char, kFamily.size() + 1> name{};
  kFamily.copy(name.data(), kFamily.size());
  return Request(GENL_ID_CTRL, 0, sequence, CTRL_CMD_GETFAMILY, 1)
      .add(CTRL_ATTR_FAMILY_NAME, std::as_bytes(std::span(name)));
}

Request nodes_request(std::uint16_t family, std::uint32_t sequence) noexcept {
  return {family, NLM_F_DUMP, sequence, kListNodes, kVersion};
}

Request counters_request(std::uint16_t family, std::uint32_t node, std::uint32_t sequence) noexcept {
  return Request(family, NLM_F_DUMP, sequence, kGetErrorCounter, kVersion).add(kCounterNode, bytes_of(node));
}

std::optional<std::span<const std::byte>> Messages::next() noexcept {
  constexpr std::size_t kHeaders = kMessageHeader + kGenericHeader;
  nlmsghdr header{};
  while (!end_.is_done && copy_from(rest_, header)) {
    if (header.nlmsg_len < kMessageHeader || header.nlmsg_len > rest_.size()) return ended(EPROTO);
    const std::span<const std::byte> message = rest_.first(header.nlmsg_len);
    rest_ = rest_.subspan(std::min(padded(header.nlmsg_len), rest_.size()));
    if (header.nlmsg_seq != sequence_) continue;
    if (header.nlmsg_type == NLMSG_ERROR) return ended(error_in(message.subspan(kMessageHeader)));
    if (header.nlmsg_type == NLMSG_DONE) return ended(0);
    if (message.size() < kHeaders) return ended(EPROTO);
    if ((header.nlmsg_flags & NLM_F_MULTI) == 0) end_.is_done = true;
    return message.subspan(kHeaders);
  }
  return end_.is_done || rest_.empty() ? std::nullopt : ended(EPROTO);
}

std::optional<std::span<const std::byte>> Messages::ended(int error) noexcept {
  end_ = {true, error};
  return std::nullopt;
}

std::optional<std::uint16_t> family_of(std::span<const std::byte> attributes) noexcept {
  const auto id = number(attributes, CTRL_ATTR_FAMILY_ID);
  return id && *id <= 0xffff ? std::optional(static_cast<std::uint16_t>(*id)) : std::nullopt;
}

std::optional<Node> node_of(std::span<const std::byte> attributes) noexcept {
  const auto id = number(attributes, kNodeId);
  const auto device = text(attributes, kNodeDevice);
  const auto name = text(attributes, kNodeName);
  if (!id || *id > 0xffffffff || !device || !name) return std::nullopt;
  return Node{static_cast<std::uint32_t>(*id), *device, *name};
}

std::optional<ErrorCounter> counter_of(std::span<const std::byte> attributes) noexcept {
  const auto name = text(attributes, kCounterName);
  const auto value = number(attributes, kCounterValue);
  if (!name || !value) return std::nullopt;
  return ErrorCounter{*name, *value};
}

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
