#include "exporter/http/negotiation/negotiations.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {

Negotiations::Result Negotiations::of(std::string_view accept, std::string_view accept_encoding) {
  {
    const MutexLock lock(mutex_);
    if (const Entry* const known = find(accept, accept_encoding)) return known->result;
  }
  const Result result{negotiate_format(accept), negotiate_encoding(accept_encoding)};
  if (accept.size() + accept_encoding.size() > kLongest) return result;
  Entry entry{std::string(accept), std::string(accept_encoding), result};
  const MutexLock lock(mutex_);
  if (find(accept, accept_encoding) == nullptr) {
    std::swap(entries_[next_], entry);  // the replaced texts are freed after the lock is released
    used_ = std::max(used_, next_ + 1);
    next_ = (next_ + 1) % kEntries;
  }
  return result;
}

const Negotiations::Entry* Negotiations::find(std::string_view accept,
                                              std::string_view accept_encoding) const {
  for (std::size_t i = 0; i < used_; ++i) {
    const Entry& entry = entries_[i];
    if (entry.accept == accept && entry.accept_encoding == accept_encoding) return &entry;
  }
  return nullptr;
}

}  // namespace gpumeter
