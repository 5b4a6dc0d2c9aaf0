#include "collectors/nvidia/device_events.hpp"

#include <algorithm>
#include <iterator>

namespace gpumeter::nvidia {

std::size_t xid_place(std::uint64_t xid) noexcept {
  return static_cast<std::size_t>(std::find(std::begin(kXids), std::end(kXids), xid) - std::begin(kXids));
}

void DeviceEvents::count_xid(std::uint64_t xid, Nanoseconds realtime) noexcept {
  const std::size_t place = xid_place(xid);
  xids_[place].fetch_add(1);
  last_[place] = to_seconds(realtime);
}

}  // namespace gpumeter::nvidia
