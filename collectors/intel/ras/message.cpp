#include "collectors/intel/ras/message.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <algorithm>
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

}  // namespace

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

}  // namespace gpumeter::intel::ras
