#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "collectors/api/sample.hpp"

/// The error counts of a card, which the kernel reports by the generic netlink family drm-ras (kernel 7.2,
/// Documentation/netlink/specs/drm_ras.yaml and include/uapi/drm/drm_ras.h), by node and error.
namespace gpumeter::intel::ras {

/// An error of xe (kernel 7.2, include/uapi/drm/xe_drm.h): the kernel's name and gpumeter's.
struct ErrorName {
  std::string_view key;
  std::string_view block;
};
inline constexpr ErrorName kErrors[] = {{"core-compute", "core_compute"},
                                        {"soc-internal", "soc_internal"},
                                        {"device-memory", "device_memory"},
                                        {"pcie", "pcie"},
                                        {"fabric", "fabric"}};
inline constexpr std::size_t kErrorCount = std::size(kErrors);
inline constexpr std::size_t kDeviceMemory = 2;  // index in kErrors; the others are no memory's

inline constexpr std::string_view kSeverities[] = {"corrected", "uncorrected"};
inline constexpr std::size_t kSeverityCount = std::size(kSeverities);

/// The severity of a node's counters, by index in kSeverities. nullopt: the node has other counters.
std::optional<std::size_t> severity_of(std::string_view node) noexcept;

/// True if the node is the card's; some kernels leave the PCI domain 0 out.
bool is_of(std::string_view node_device, std::string_view pci_address) noexcept;

/// The counts of one card since its driver was loaded. nullopt: not counted.
struct Counts {
  std::array<std::array<std::optional<double>, kErrorCount>, kSeverityCount> values{};
  ReadStatus status = ReadStatus::unsupported;

  /// Adds a counter of a node; other names are skipped.
  void add(std::size_t severity, std::string_view error, double value) noexcept;
};

/// Asks the kernel for the counts of a card. `unsupported`: the kernel has no family drm-ras, or no node of
/// the card. `denied`: the family requires CAP_NET_ADMIN. Waits for at most a second; lane thread.
Counts read_counts(std::string_view pci_address) noexcept;

// Messages of the family.

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

/// A request, with room for the longest of the three.
class Request {
 public:
  Request(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint8_t command,
          std::uint8_t version) noexcept;

  /// Adds an attribute; one that does not fit is left out.
  Request& add(std::uint16_t type, std::span<const std::byte> value) noexcept;
  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(size_); }

 private:
  void append(std::span<const std::byte> value) noexcept;

  alignas(4) std::array<std::byte, 64> bytes_{};
  std::size_t size_ = 0;
};

/// The three requests. `family` is the number that the kernel gave to the family.
Request family_request(std::uint32_t sequence) noexcept;
Request nodes_request(std::uint16_t family, std::uint32_t sequence) noexcept;
Request counters_request(std::uint16_t family, std::uint32_t node, std::uint32_t sequence) noexcept;

/// What ends an answer. `error`: the kernel's errno, 0 for success.
struct End {
  bool is_done = false;
  int error = 0;
};

/// The messages of one datagram that answer a request; those of earlier requests are skipped. Accepts any
/// bytes: a datagram that breaks the format ends with EPROTO.
class Messages {
 public:
  Messages(std::span<const std::byte> datagram, std::uint32_t sequence) noexcept
      : rest_(datagram), sequence_(sequence) {}

  /// The attributes of the next message that carries any, valid as long as the datagram; nullopt: no more.
  std::optional<std::span<const std::byte>> next() noexcept;
  /// False in `is_done`: the answer goes on in another datagram.
  const End& end() const noexcept { return end_; }

 private:
  std::optional<std::span<const std::byte>> ended(int error) noexcept;

  std::span<const std::byte> rest_;
  std::uint32_t sequence_;
  End end_;
};

/// nullopt: the attributes lack a part of it.
std::optional<std::uint16_t> family_of(std::span<const std::byte> attributes) noexcept;
std::optional<Node> node_of(std::span<const std::byte> attributes) noexcept;
std::optional<ErrorCounter> counter_of(std::span<const std::byte> attributes) noexcept;

}  // namespace gpumeter::intel::ras
