#include "collectors/sources/fdinfo/device_watch.hpp"

#include <exception>
#include <utility>

namespace gpumeter::fdinfo {

DeviceWatch::DeviceWatch(std::shared_ptr<DrmUsers> users, std::string device, bool is_on)
    : users_(std::move(users)), device_(std::move(device)) {
  turn_on(is_on);
}

void DeviceWatch::turn_on(bool is_on) noexcept try {
  if (!is_on) {
    handle_.reset();
  } else if (users_ && !handle_) {
    handle_ = users_->watch(device_, kEvery);
  }
} catch (const std::exception&) {  // out of memory
  handle_.reset();
}

std::shared_ptr<const DrmUse> DeviceWatch::latest(Nanoseconds now, bool& is_late) const noexcept {
  is_late = false;
  std::shared_ptr<const DrmUse> use = users_ ? users_->use_of(device_) : nullptr;
  is_late = use && now - use->scanned_at > kStale;
  return is_late ? nullptr : use;
}

}  // namespace gpumeter::fdinfo
