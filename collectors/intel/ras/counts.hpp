#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

#include "collectors/api/sample.hpp"

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

}  // namespace gpumeter::intel::ras
