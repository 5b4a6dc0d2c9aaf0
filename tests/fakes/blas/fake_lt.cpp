// libcublasLt.so.12 and libhipblaslt.so.0 for fp8, from the documented ABI (cublasLt.h, hipblaslt.h). It
// refuses what a card refuses, and all that differs from the documents: sizes of attributes, the form of the
// factors, scales that are not 1, a smaller workspace, an algorithm that it did not choose.
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>

#include "fake.hpp"

namespace {

using gpumeter::benchmark::Element;

constexpr std::uint64_t kAlgorithm = 0x5eed;
constexpr std::size_t kWorkspace = 1 << 20;

struct Product {
  int compute, scale;
  std::map<int, std::array<std::byte, 8>> attributes;
};
struct Layout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t stride;
};
struct Preference {
  std::uint64_t workspace = 0;
};

/// What differs between the two.
struct Kind {
  std::size_t algorithm_bytes;
  int transposed, plain, transpose_a, transpose_b, scale_a, scale_b, compute, invalid, unsupported;
};
constexpr Kind kCuda{64, 1, 0, 3, 4, 17, 18, 68, 7, 15};
constexpr Kind kHip{24, 112, 111, 0, 1, 5, 6, 2, 3, 7};

template <class T>
int create(void** place, T value) {
  static std::deque<T> all;  // their users never give them back
  *place = &all.emplace_back(std::move(value));
  return 0;
}

template <class T>
T attribute(const Product& product, int name) {
  T value{};
  const auto found = product.attributes.find(name);
  if (found != product.attributes.end()) std::memcpy(&value, found->second.data(), sizeof value);
  return value;
}

int set_attribute(const Kind& kind, void* product, int name, const void* value, std::size_t size) {
  const bool is_scale = name == kind.scale_a || name == kind.scale_b;
  if (size != (is_scale ? sizeof(void*) : sizeof(std::int32_t))) return kind.invalid;
  std::memcpy(static_cast<Product*>(product)->attributes[name].data(), value, size);
  return 0;
}

bool is_one(const Product& product, int scale) {
  const auto* const place = attribute<const float*>(product, scale);
  return place != nullptr && *place == 1;
}

/// The encoding that the card has; false: none, or another.
bool has_type(const Kind& kind, int type) {
  if (kind.transposed == kCuda.transposed) return type == 28 && fake_gpu() == "hopper";
  if (fake_gpu() == "gfx942") return type == 1000;
  return type == 28 && (fake_gpu() == "gfx950" || fake_gpu() == "gfx1201");
}

bool is_square(const Layout& layout) {
  return layout.rows == layout.columns && layout.rows == static_cast<std::uint64_t>(layout.stride) &&
         layout.rows % 16 == 0;
}

int heuristic(const Kind& kind, const Product& product, const Layout& factor, const Layout& sum,
              const Preference& preference, std::byte* found, int* count) {
  *count = 0;
  if (!has_type(kind, factor.type)) return kind.unsupported;
  const bool is_right = attribute<std::int32_t>(product, kind.transpose_a) == kind.transposed &&
                        attribute<std::int32_t>(product, kind.transpose_b) == kind.plain &&
                        product.compute == kind.compute && product.scale == 0 && sum.type == 0 &&
                        is_square(factor) && is_square(sum) && preference.workspace >= kWorkspace;
  if (!is_right) return kind.invalid;
  std::memcpy(found, &kAlgorithm, sizeof kAlgorithm);
  std::memcpy(found + kind.algorithm_bytes, &kWorkspace, sizeof kWorkspace);
  std::memset(found + kind.algorithm_bytes + sizeof kWorkspace, 0, 24);
  return *count = 1, 0;
}

int matmul(const Kind& kind, const Product& product, const void* alpha, const Layout& factor, const void* a,
           const void* b, const void* beta, void* c, const void* algorithm, const void* workspace,
           std::size_t bytes) {
  std::uint64_t chosen = 0;
  std::memcpy(&chosen, algorithm, sizeof chosen);
  const bool is_right = *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0 &&
                        chosen == kAlgorithm && workspace != nullptr && bytes >= kWorkspace &&
                        is_one(product, kind.scale_a) && is_one(product, kind.scale_b);
  if (!is_right) return kind.invalid;
  return gemm(factor.type == 1000 ? Element::e4m3_fnuz : Element::e4m3, Element::fp32,
              static_cast<int>(factor.rows), a, b, c);
}

}  // namespace

extern "C" {
#define FAKE_LT(prefix, kind)                                                                               \
  int prefix##Create(void** handle) { return *handle = nullptr, 0; }                                        \
  int prefix##MatmulDescCreate(void** product, int compute, int scale) {                                    \
    return create(product, Product{compute, scale, {}});                                                    \
  }                                                                                                         \
  int prefix##MatmulDescSetAttribute(void* product, int name, const void* value, std::size_t size) {        \
    return set_attribute(kind, product, name, value, size);                                                 \
  }                                                                                                         \
  int prefix##MatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,        \
                                 std::int64_t stride) {                                                     \
    return create(layout, Layout{type, rows, columns, stride});                                             \
  }                                                                                                         \
  int prefix##MatmulPreferenceCreate(void** preference) { return create(preference, Preference{}); }        \
  int prefix##MatmulPreferenceSetAttribute(void* preference, int name, const void* value,                   \
                                           std::size_t size) {                                              \
    if (name != 1 || size != 8) return (kind).invalid;                                                      \
    return std::memcpy(&static_cast<Preference*>(preference)->workspace, value, size), 0;                   \
  }                                                                                                         \
  int prefix##MatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void* c, void* d,              \
                                     void* preference, int most, void* found, int* count) {                 \
    if (a != b || c != d || most != 1) return (kind).invalid;                                               \
    return heuristic(kind, *static_cast<Product*>(product), *static_cast<Layout*>(a),                       \
                     *static_cast<Layout*>(c), *static_cast<Preference*>(preference),                       \
                     static_cast<std::byte*>(found), count);                                                \
  }                                                                                                         \
  int prefix##Matmul(void*, void* product, const void* alpha, const void* a, void* factors, const void* b,  \
                     void*, const void* beta, const void* c, void*, void* d, void*, const void* algorithm,  \
                     void* workspace, std::size_t bytes, void*) {                                           \
    if (c != d) return (kind).invalid;                                                                      \
    return matmul(kind, *static_cast<Product*>(product), alpha, *static_cast<Layout*>(factors), a, b, beta, \
                  d, algorithm, workspace, bytes);                                                          \
  }
FAKE_LT(cublasLt, kCuda)
FAKE_LT(hipblasLt, kHip)
int hipblasLtGetVersion(void*, int* version) { return *version = 1000, 0; }
}
