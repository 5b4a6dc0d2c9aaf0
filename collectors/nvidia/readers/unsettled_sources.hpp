#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"

namespace gpumeter::nvidia {

class NvidiaContext;

/// Sources whose first reading at attach failed in a way that may pass (UNKNOWN, TIMEOUT). Their rows are
/// bound all the same. If they still fail at the next look while the GPU is read, they are set aside: the GPU
/// is bound again without them, so that the next row of their series has its turn, and they are asked again
/// ever more rarely. Lane thread.
class UnsettledSources {
 public:
  using Read = Sample (*)(NvidiaContext&, int handle) noexcept;

  /// Which row it is: name and argument of its ReadSource, and the target that it is bound to. Without a
  /// name: something that several rows need.
  struct Key {
    const char* name;
    std::uint64_t argument;
    std::size_t target;
    bool operator==(const Key&) const = default;
  };

  /// The GPU is opened. The same sources stay set aside if it is bound again because look() said so.
  void open() noexcept;

  /// At attach: the first reading failed. False: it is set aside, so its row is not to be bound. `read` and
  /// `handle` are what look() asks it by.
  bool admit(const Key& key, Read read, int handle);

  /// At attach: a row cannot be bound without a first reading; look() asks whether there is one by now, once
  /// for all rows that await the same.
  void await(const Key& key, Read read, int handle);

  /// The GPU is going to be bound again for another reason than look()'s.
  void bind_again() noexcept { binds_again_ = true; }

  bool empty() const noexcept { return waiting_.empty(); }

  /// True at the moments at which look() is worth its calls.
  bool is_time(Nanoseconds now) noexcept;

  /// Asks each of them. True: to bind the GPU again would now give other rows.
  bool look(NvidiaContext& context);

 private:
  struct Source {
    Key key;
    Read read;
    int handle;
    bool is_bound;
  };
  bool is_settled(NvidiaContext& context, Source& source, bool& changes);

  std::vector<Source> waiting_;
  std::vector<Key> set_aside_;
  Nanoseconds interval_{};
  Nanoseconds next_look_{};  // zero: the first call of is_time() says when
  bool binds_again_ = false;
};

/// Whether a first reading that ended so may do better later.
constexpr bool may_pass(ReadStatus status) noexcept {
  return status == ReadStatus::failed || status == ReadStatus::timeout;
}

}  // namespace gpumeter::nvidia
