#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/jobs/intake/datagrams.hpp"

namespace gpumeter::jobs {

/// Messages in the order of their arrival, and the number of lines that were rejected between them.
class Letters {
 public:
  bool empty() const noexcept { return heads_.empty() && over_rate_ == 0; }
  bool has_messages() const noexcept { return !heads_.empty(); }
  /// Memory that the messages need.
  std::size_t size() const noexcept { return bytes_.size() + heads_.size() * sizeof(Head); }
  void add(const Datagram& datagram);
  /// Adds all that `later` has, and empties it.
  void append(Letters& later);
  void add_over_rate(std::uint64_t lines) noexcept { over_rate_ += lines; }
  std::uint64_t over_rate() const noexcept { return over_rate_; }

  /// A datagram is valid during its `take`.
  template <class Take>
  void for_each(Take take) const {
    std::size_t at = 0;
    for (const Head& head : heads_) {
      take(Datagram{{bytes_.data() + at, head.size}, head.from, head.sent, head.cut});
      at += head.size;
    }
  }
  /// Returns large memory to the system.
  void clear();

 private:
  struct Head {
    Credentials from;
    Nanoseconds sent;
    std::uint32_t size;
    bool cut;
  };
  std::vector<char> bytes_;
  std::vector<Head> heads_;
  std::uint64_t over_rate_ = 0;
};

/// Messages on their way from the thread that receives them to the thread "jobs". Any thread.
class Inbox {
 public:
  /// Above this the receiving thread waits. One delivery of it may exceed it.
  static constexpr std::size_t kRoom = std::size_t{2} << 20;

  /// Moves all messages of `letters` here. Returns true if the reader must be woken: there are messages, and
  /// none was waiting before.
  bool put(Letters& letters) GPUMETER_EXCLUDES(mutex_);
  /// Waits until there is room, for `at_most` this long. Returns false if there is none.
  bool wait_for_room(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);
  /// Moves all messages to `letters`, which must be empty.
  void take(Letters& letters) GPUMETER_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  Condition taken_;
  Letters waiting_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::jobs
