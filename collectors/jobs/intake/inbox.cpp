#include "collectors/jobs/intake/inbox.hpp"

#include <utility>

namespace gpumeter::jobs {
namespace {

/// Memory that is kept for the next messages: more than all jobs of a machine send between two turns.
constexpr std::size_t kKept = 65'536;

template <class Element>
void clear_vector(std::vector<Element>& vector) {
  if (vector.capacity() * sizeof(Element) > kKept) {
    vector = {};
  } else {
    vector.clear();
  }
}

}  // namespace

/// The payload of a datagram that was cut is of no use.
void Letters::add(const Datagram& datagram) {
  const std::string_view payload = datagram.cut ? std::string_view() : datagram.payload;
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
  heads_.push_back({datagram.from, datagram.sent, static_cast<std::uint32_t>(payload.size()), datagram.cut});
}

void Letters::append(Letters& later) {
  if (empty()) return std::swap(*this, later);
  bytes_.insert(bytes_.end(), later.bytes_.begin(), later.bytes_.end());
  heads_.insert(heads_.end(), later.heads_.begin(), later.heads_.end());
  over_rate_ += later.over_rate_;
  later.clear();
}

void Letters::clear() {
  clear_vector(bytes_);
  clear_vector(heads_);
  over_rate_ = 0;
}

bool Inbox::put(Letters& letters) {
  const MutexLock lock(mutex_);
  const bool had_messages = waiting_.has_messages();
  waiting_.append(letters);
  return waiting_.has_messages() && !had_messages;
}

bool Inbox::wait_for_room(Nanoseconds at_most) {
  const MutexLock lock(mutex_);
  if (waiting_.size() >= kRoom) taken_.wait_for(mutex_, at_most);
  return waiting_.size() < kRoom;
}

void Inbox::take(Letters& letters) {
  const MutexLock lock(mutex_);
  std::swap(waiting_, letters);
  taken_.notify_all();
}

}  // namespace gpumeter::jobs
