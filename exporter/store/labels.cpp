#include "exporter/store/labels.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
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

void read(std::string_view stored, std::vector<Labels::Pair>& pairs) {
  while (!stored.empty()) {
    const std::string_view name = stored.substr(0, stored.find('='));
    stored.remove_prefix(name.size() + 1);
    LengthBytes length{};
    std::ranges::copy(stored.substr(0, length.size()), length.begin());
    const std::string_view value = stored.substr(length.size(), std::bit_cast<Length>(length));
    pairs.emplace_back(name, value);
    stored.remove_prefix(length.size() + value.size());
  }
}

}  // namespace

/// The shared copy. The pairs of a device are stored once, as the `base` of all sets that begin with them.
struct Labels::Set {
  Set(Labels its_base, unsigned its_order, std::string its_own)
      : base(std::move(its_base)),
        order(its_order),
        own(std::move(its_own)),
        hash(std::hash<std::string>()(flat())) {}

  const Labels base;
  const unsigned order;
  const std::string own;
  const std::size_t hash;
  mutable std::atomic<std::uint32_t> owners{1};

  std::string flat() const { return base.set_ == nullptr ? own : base.set_->flat() + own; }
};

/// All sets that have an owner. It is never destroyed, so that Labels may live as long as they like.
class Labels::Table {
 public:
  static Table& instance() {
    static Table& table = *new Table;
    return table;
  }

  const Set* intern(std::unique_ptr<Set> candidate) {
    const MutexLock lock(mutex_);
    const auto [found, is_new] = sets_.insert(candidate.get());
    if (is_new) return candidate.release();
    (*found)->owners.fetch_add(1, std::memory_order_relaxed);
    return *found;
  }

  /// Gives up an ownership that may be the last: a set without owners is never found in the table.
  void release(const Set* set) noexcept {
    {
      const MutexLock lock(mutex_);
      if (set->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      sets_.erase(set);
    }
    delete set;  // without the mutex, since it may release its base
  }

 private:
  struct Hash {
    std::size_t operator()(const Set* set) const noexcept { return set->hash; }
  };
  struct Equal {
    bool operator()(const Set* a, const Set* b) const {
      return a->order == b->order && (a->base == b->base ? a->own == b->own : a->flat() == b->flat());
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
  *this = interned({}, index, std::move(own));
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

Labels Labels::interned(const Labels& base, unsigned order, std::string own) {
  own.shrink_to_fit();
  return Labels(Table::instance().intern(std::make_unique<Set>(base, order, std::move(own))));
}

Labels Labels::with(std::span<const Label> added) const {
  std::vector<Pair> known = pairs();
  std::string own;
  for (const Label& label : added) {
    const bool is_known = std::ranges::find(known, label.name, &Pair::first) != known.end();
    if (is_known || label.value.empty()) continue;
    append(own, label.name, label.value);
    known.emplace_back(label.name, label.value);
  }
  return own.empty() ? *this : interned(*this, order(), std::move(own));
}

std::vector<Labels::Pair> Labels::pairs() const {
  if (set_ == nullptr) return {};
  std::vector<Pair> pairs = set_->base.pairs();
  read(set_->own, pairs);
  return pairs;
}

unsigned Labels::order() const noexcept { return set_ == nullptr ? kNoDevice : set_->order; }

}  // namespace gpumeter
