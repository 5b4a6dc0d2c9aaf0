#include "collectors/sources/fdinfo/device_watch.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter::fdinfo {

DeviceWatch::DeviceWatch(std::shared_ptr<DrmUsers> users, std::string device, Nanoseconds every)
    : users_(std::move(users)), device_(std::move(device)), every_(every) {
  turn_on(true);
}

void DeviceWatch::turn_on(bool is_on) {
  if (!users_ || is_on == std::exchange(is_on_, is_on)) return;
  handle_ = is_on ? users_->watch(device_, every_) : nullptr;
}

std::shared_ptr<const DrmUse> DeviceWatch::latest(Nanoseconds now, bool& is_late) const noexcept {
  is_late = false;
  std::shared_ptr<const DrmUse> use = users_ ? users_->use_of(device_) : nullptr;
  is_late = use && now - use->scanned_at > std::max(kStale, 3 * every_);
  return is_late ? nullptr : use;
}

}  // namespace gpumeter::fdinfo
