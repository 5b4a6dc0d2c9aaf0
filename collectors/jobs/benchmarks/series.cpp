#include "collectors/jobs/benchmarks/series.hpp"

#include <algorithm>

namespace gpumeter::jobs::benchmarks {
namespace {

bool same_device(const DeviceIdentity& one, const DeviceIdentity& other) {
  return one.index == other.index && one.name == other.name && one.info == other.info;
}

}  // namespace

void Series::show(const Results& results, std::vector<DeviceIdentity> devices, Nanoseconds now) {
  if (results.version() == version_ && std::ranges::equal(devices, devices_, same_device)) return;
  version_ = results.version();
  devices_ = std::move(devices);
  for (const DeviceIdentity& device : devices_) {
    const Labels labels(device.info, device.index, device.name, labels_);
    for (const benchmarks::Result& result : results.shown(device.info.uuid)) {
      list_.add(*result.kind->family, labels.with(result.labels), result.value);
    }
  }
  list_.commit(now);
}

}  // namespace gpumeter::jobs::benchmarks
