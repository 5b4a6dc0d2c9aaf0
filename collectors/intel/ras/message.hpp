#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Messages of the generic netlink family drm-ras (kernel 7.2, Documentation/netlink/specs/drm_ras.yaml and
/// include/uapi/drm/drm_ras.h): the error counters of a card, by node and error.
namespace gpumeter::intel::ras {

inline constexpr std::string_view kFamily = "drm-ras";

/// A list of error counters of one card: "correctable-errors", "uncorrectable-errors".
struct Node {
  std::uint32_t id = 0;
  std::string_view device;  ///< PCI address, such as "0000:03:00.0"
  std::string_view name;
};

struct ErrorCounter {
  std::string_view name;  ///< "core-compute", "device-memory"
  std::uint64_t value = 0;
};

/// The three requests. `family` is the number that the kernel gave to the family.
std::vector<std::byte> family_request(std::uint32_t sequence);
std::vector<std::byte> nodes_request(std::uint16_t family, std::uint32_t sequence);
std::vector<std::byte> counters_request(std::uint16_t family, std::uint32_t node, std::uint32_t sequence);

/// What ends an answer. `error`: the kernel's errno, 0 for success.
struct End {
  bool is_done = false;
  int error = 0;
};

/// Walks the messages of one datagram and calls `take` with the attributes of each that carries any. They
/// accept any bytes; a datagram that breaks the format ends with EPROTO. Texts are valid during the call.
using TakeAttributes = std::function<void(std::span<const std::byte> attributes)>;
End walk(std::span<const std::byte> datagram, std::uint32_t sequence, const TakeAttributes& take);

/// nullopt: the attributes lack a part of it.
std::optional<std::uint16_t> family_of(std::span<const std::byte> attributes) noexcept;
std::optional<Node> node_of(std::span<const std::byte> attributes) noexcept;
std::optional<ErrorCounter> counter_of(std::span<const std::byte> attributes) noexcept;

}  // namespace gpumeter::intel::ras
