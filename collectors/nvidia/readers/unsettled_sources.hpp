#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectors/table/reader.hpp"

namespace gpumeter::nvidia {

/// Sources whose first reading at attach failed in a way that may pass (UNKNOWN, TIMEOUT). Their rows are
/// bound all the same. If such a source still fails at the next look, it is set aside: the GPU is bound again
/// without it, so that the next row of its series has its turn, and the source is asked ever more rarely.
/// Lane thread.
class UnsettledSources {
 public:
  /// Identifies a row: name and argument of its ReadSource, and the target that it is bound to. Without a
  /// name: something that several rows need.
  struct Key {
    const char* name;
    std::uint64_t argument;
    std::size_t target;
    bool operator==(const Key&) const = default;
  };

  /// The GPU is opened. The same sources stay set aside if the GPU is bound again because of look().
  void open() noexcept;

  /// At attach: the first reading failed. False: the source is set aside, so its row is not to be bound.
  /// look() asks by `probe`.
  bool admit(const Key& key, Reader probe);

  /// At attach: a row cannot be bound without a first reading. look() asks whether there is one by now, once
  /// for all rows with the same key.
  void await(const Key& key, Reader probe);

  /// The GPU is going to be bound again for another reason than look()'s.
  void bind_again() noexcept { binds_again_ = true; }

  bool empty() const noexcept { return waiting_.empty(); }

  /// True at the moments at which look() is worth its calls.
  bool is_time(Nanoseconds now) noexcept;

  /// Asks each of them. True: to bind the GPU again would now give other rows.
  bool look();

 private:
  struct Source {
    Key key;
    Reader probe;
    bool is_bound;
  };
  bool is_settled(Source& source, bool& changes);

  std::vector<Source> waiting_;
  std::vector<Key> set_aside_;
  Nanoseconds interval_{};
  Nanoseconds next_look_{};  // zero: the first call of is_time() sets it
  bool binds_again_ = false;
};

/// Whether a first reading that ended so may do better later.
constexpr bool may_pass(ReadStatus status) noexcept {
  return status == ReadStatus::failed || status == ReadStatus::timeout;
}

}  // namespace gpumeter::nvidia
