#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "collectors/api/descriptor.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::bench {

inline constexpr std::size_t kDevices = 8;
inline constexpr std::size_t kFamilies = 60;

/// The given number of series, spread over 8 devices and 60 families, with values typical of GPUs. A third
/// are small whole numbers, a third ratios, and a third large counters with a fraction.
struct SampleSeries {
  std::deque<std::string> names;
  std::deque<MetricDescriptor> families;
  std::vector<SeriesSpec> of_device;
  std::vector<double> values;

  explicit SampleSeries(std::size_t count) {
    for (std::size_t i = 0; i < kFamilies; ++i) {
      names.push_back("gpu_measured_quantity_" + std::to_string(i) + "_watts");
      families.push_back({names.back(), "A quantity that was measured.", "watts", MetricType::gauge});
    }
    for (std::size_t i = 0; i < count / kDevices; ++i) {
      of_device.push_back({&families[i % kFamilies], {{"sensor", "s" + std::to_string(i / kFamilies)}}});
      const auto number = static_cast<double>(i + 1);
      values.push_back(i % 3 == 0 ? number : i % 3 == 1 ? 1 / number : 1e9 / 3 + number);
    }
  }

  static DeviceInfo device(std::size_t index) {
    DeviceInfo info;
    info.uuid = "GPU-4f6f3a1e-91c7-4d5b-a6b9-00000000000" + std::to_string(index);
    info.vendor = "nvidia";
    info.model = "NVIDIA H100 80GB HBM3";
    return info;
  }

  /// Returns one source for each device, with all values committed.
  std::vector<Source> attach_to(Store& store) const {
    std::vector<Source> sources;
    for (std::size_t i = 0; i < kDevices; ++i) sources.push_back(attach_to(store, i));
    return sources;
  }
  Source attach_to(Store& store, std::size_t index) const {
    Source source = store.attach("bench");
    source.reserve(of_device.size());
    const Labels labels(device(index), static_cast<unsigned>(index), "");
    for (std::size_t i = 0; i < of_device.size(); ++i) {
      source.set(source.add(*of_device[i].family, labels.with(of_device[i].labels)), values[i]);
    }
    source.commit({});
    return source;
  }
};

}  // namespace gpumeter::bench
