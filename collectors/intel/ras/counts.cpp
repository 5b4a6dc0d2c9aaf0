#include "collectors/intel/ras/counts.hpp"

#include <algorithm>
#include <string>

namespace gpumeter::intel::ras {

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

}  // namespace gpumeter::intel::ras
