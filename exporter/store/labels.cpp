#include "exporter/store/labels.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <unordered_set>

#include "base/mutex.hpp"

namespace gpumeter {
namespace {

using Length = std::uint32_t;
using LengthBytes = std::array<char, sizeof(Length)>;

// A pair is stored as its name, `=`, the length of its value and the value.
void append(std::string& to, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  const auto length = std::bit_cast<LengthBytes>(static_cast<Length>(value.size()));
  to.append(name).append("=").append(length.data(), length.size()).append(value);
}

Labels::Pair take_pair(std::string_view& stored) {
  const std::string_view name = stored.substr(0, stored.find('='));
  stored.remove_prefix(name.size() + 1);
  LengthBytes length{};
  std::ranges::copy(stored.substr(0, length.size()), length.begin());
  const std::string_view value = stored.substr(length.size(), std::bit_cast<Length>(length));
  stored.remove_prefix(length.size() + value.size());
  return {name, value};
}

bool has_name(std::string_view stored, std::string_view name) {
  while (!stored.empty()) {
    if (take_pair(stored).first == name) return true;
  }
  return false;
}

/// Continues `before`, the hash of the pairs before: a set's hash depends on its pairs only, however they are
/// divided into base and own.
std::size_t hashed(std::size_t before, std::string_view stored) noexcept {
  constexpr std::size_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  while (!stored.empty()) {
    const std::string_view from = stored;
    take_pair(stored);
    const std::string_view pair = from.substr(0, from.size() - stored.size());
    before = (std::rotl(before, 5) ^ std::hash<std::string_view>()(pair)) * kOdd;
  }
  return before;
}

}  // namespace

/// The shared copy: a header followed by the pairs that `base` lacks. The pairs of a device are thus stored
/// once for all its series.
struct Labels::Set {
  const Labels base;
  const std::size_t hash;
  const unsigned order;
  const Length length;
  mutable std::atomic<std::uint32_t> owners{1};

  static Set* make(const Labels& base, unsigned order, std::string_view own) {
    const std::size_t hash = hashed(base.set_ == nullptr ? 0 : base.set_->hash, own);
    auto* const memory = static_cast<char*>(::operator new(sizeof(Set) + own.size()));
    std::ranges::copy(own, memory + sizeof(Set));
    return new (memory) Set{base, hash, order, static_cast<Length>(own.size())};
  }
  static void destroy(const Set* set) noexcept {
    set->~Set();
    ::operator delete(const_cast<Set*>(set));
  }

  std::string_view own() const noexcept {
    return {reinterpret_cast<const char*>(this) + sizeof(Set), length};
  }
  static std::string flat(const Set* set) {
    return set == nullptr ? std::string() : flat(set->base.set_).append(set->own());
  }
  static bool has(const Set* set, std::string_view name) {
    for (; set != nullptr; set = set->base.set_) {
      if (has_name(set->own(), name)) return true;
    }
    return false;
  }
};

/// All sets that have an owner. Never destroyed, because Labels of static lifetime may outlive it.
class Labels::Table {
 public:
  static Table& instance() {
    static Table& table = *new Table;
    return table;
  }

  /// Takes ownership of the candidate, or destroys it and returns the equal set.
  const Set* intern(const Set* candidate) {
    const Set* equal = insert(candidate);
    if (equal != candidate) Set::destroy(candidate);  // without the mutex, since this may release its base
    return equal;
  }

  /// Gives up one ownership, which may be the last. The table never contains a set without owners.
  void release(const Set* set) noexcept {
    {
      const MutexLock lock(mutex_);
      if (set->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      sets_.erase(set);
    }
    Set::destroy(set);  // without the mutex, as above
  }

 private:
  const Set* insert(const Set* candidate) {
    const MutexLock lock(mutex_);
    const auto [found, is_new] = sets_.insert(candidate);
    if (!is_new) (*found)->owners.fetch_add(1, std::memory_order_relaxed);
    return *found;
  }

  struct Hash {
    std::size_t operator()(const Set* set) const noexcept { return set->hash; }
  };
  struct Equal {
    bool operator()(const Set* a, const Set* b) const {
      return a->order == b->order &&
             (a->base == b->base ? a->own() == b->own() : Set::flat(a) == Set::flat(b));
    }
  };

  Mutex mutex_;
  std::unordered_set<const Set*, Hash, Equal> sets_ GPUMETER_GUARDED_BY(mutex_);
};

Labels::Labels(const DeviceInfo& device, unsigned index, std::string_view name, const DeviceLabels& which) {
  std::string own;
  append(own, "gpu", std::to_string(index));
  append(own, "uuid", device.uuid);
  if (which.vendor) append(own, "vendor", device.vendor);
  if (which.model) append(own, "model", device.model);
  if (which.pci_address) append(own, "pci_address", device.pci_address);
  if (which.serial) append(own, "serial", device.serial);
  if (which.name) append(own, "name", name);
  *this = interned({}, index, own);
}

Labels::Labels(const Labels& other) noexcept : set_(other.set_) {
  if (set_ != nullptr) set_->owners.fetch_add(1, std::memory_order_relaxed);
}

Labels::~Labels() {
  if (set_ == nullptr) return;
  std::uint32_t owners = set_->owners.load(std::memory_order_relaxed);
  while (owners > 1) {
    if (set_->owners.compare_exchange_weak(owners, owners - 1, std::memory_order_acq_rel)) return;
  }
  Table::instance().release(set_);
}

Labels Labels::interned(const Labels& base, unsigned order, std::string_view own) {
  return Labels(Table::instance().intern(Set::make(base, order, own)));
}

Labels Labels::with(std::span<const Label> added) const {
  std::string own;
  for (const Label& label : added) {
    const bool is_known = Set::has(set_, label.name) || has_name(own, label.name);
    if (!is_known) append(own, label.name, label.value);
  }
  return own.empty() ? *this : interned(*this, order(), own);
}

std::vector<Labels::Pair> Labels::pairs() const {
  if (set_ == nullptr) return {};
  std::vector<Pair> pairs = set_->base.pairs();
  for (std::string_view own = set_->own(); !own.empty();) pairs.push_back(take_pair(own));
  return pairs;
}

unsigned Labels::order() const noexcept { return set_ == nullptr ? kNoDevice : set_->order; }

}  // namespace gpumeter
