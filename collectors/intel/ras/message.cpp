#include "collectors/intel/ras/message.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

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

class Request {
 public:
  Request(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint8_t command,
          std::uint8_t version) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    header.nlmsg_seq = sequence;
    append(bytes_of(header));
    const genlmsghdr generic{command, version, 0};
    append(bytes_of(generic));
  }

  Request& add(std::uint16_t type, std::span<const std::byte> value) {
    const nlattr attribute{static_cast<std::uint16_t>(kAttributeHeader + value.size()), type};
    append(bytes_of(attribute));
    append(value);
    return *this;
  }

  std::vector<std::byte> take() {
    const auto size = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &size, sizeof(size));
    return std::move(bytes_);
  }

 private:
  void append(std::span<const std::byte> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    bytes_.resize(padded(bytes_.size()));
  }
  std::vector<std::byte> bytes_;
};

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

End error_of(std::span<const std::byte> payload) noexcept {
  std::int32_t error = 0;  // the first field of struct nlmsgerr, negative
  return copy_from(payload, error) ? End{true, error < 0 ? -error : 0} : End{true, EPROTO};
}

}  // namespace

std::vector<std::byte> family_request(std::uint32_t sequence) {
  std::array<char, kFamily.size() + 1> name{};
  kFamily.copy(name.data(), kFamily.size());
  return Request(GENL_ID_CTRL, 0, sequence, CTRL_CMD_GETFAMILY, 1)
      .add(CTRL_ATTR_FAMILY_NAME, std::as_bytes(std::span(name)))
      .take();
}

std::vector<std::byte> nodes_request(std::uint16_t family, std::uint32_t sequence) {
  return Request(family, NLM_F_DUMP, sequence, kListNodes, kVersion).take();
}

std::vector<std::byte> counters_request(std::uint16_t family, std::uint32_t node, std::uint32_t sequence) {
  return Request(family, NLM_F_DUMP, sequence, kGetErrorCounter, kVersion)
      .add(kCounterNode, bytes_of(node))
      .take();
}

// An answer to an earlier request, which took too long, is skipped.
End walk(std::span<const std::byte> datagram, std::uint32_t sequence, const TakeAttributes& take) {
  constexpr std::size_t kHeaders = kMessageHeader + kGenericHeader;
  nlmsghdr header{};
  while (copy_from(datagram, header)) {
    if (header.nlmsg_len < kMessageHeader || header.nlmsg_len > datagram.size()) return {true, EPROTO};
    const std::span<const std::byte> message = datagram.first(header.nlmsg_len);
    datagram = datagram.subspan(std::min(padded(header.nlmsg_len), datagram.size()));
    if (header.nlmsg_seq != sequence) continue;
    if (header.nlmsg_type == NLMSG_ERROR) return error_of(message.subspan(kMessageHeader));
    if (header.nlmsg_type == NLMSG_DONE) return {true, 0};
    if (message.size() < kHeaders) return {true, EPROTO};
    take(message.subspan(kHeaders));
    if ((header.nlmsg_flags & NLM_F_MULTI) == 0) return {true, 0};
  }
  return datagram.empty() ? End{} : End{true, EPROTO};
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

}  // namespace gpumeter::intel::ras
