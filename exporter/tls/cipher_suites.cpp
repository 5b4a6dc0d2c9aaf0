#include "exporter/tls/cipher_suites.hpp"

#include <algorithm>

namespace gpumeter {
namespace {

template <class Rows>
auto find(const Rows& rows, std::string_view name) noexcept {
  const auto found = std::ranges::find(rows, name, [](const auto& row) { return row.name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const CipherSuite* find_cipher_suite(std::string_view name) noexcept { return find(kCipherSuites, name); }

const Curve* find_curve(std::string_view name) noexcept { return find(kCurves, name); }

}  // namespace gpumeter
