#pragma once

#include <array>
#include <iterator>
#include <string_view>

#include "collectors/api/catalog.hpp"
#include "collectors/intel/readers/basic.hpp"

/// Rows of temperatures and fans.
namespace gpumeter::intel {

inline constexpr Traits kCelsius{.min = -50, .max = 250};
inline constexpr Traits kCelsiusLimit{.min = 1, .max = 250, .zero_is_unknown = true};

/// A sensor of xe by its label (Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon). i915 has one, which
/// it does not label.
struct TemperatureSensor {
  std::string_view sensor, file;
};
inline constexpr TemperatureSensor kTemperatureSensors[] = {
    {"core", "hwmon/temp{pkg}"},
    {"memory", "hwmon/temp{vram}"},
    {"mctrl", "hwmon/temp{mctrl}"},
    {"pcie", "hwmon/temp{pcie}"},
    {"vram_ch_0", "hwmon/temp{vram_ch_0}"},
    {"vram_ch_1", "hwmon/temp{vram_ch_1}"},
    {"vram_ch_2", "hwmon/temp{vram_ch_2}"},
    {"vram_ch_3", "hwmon/temp{vram_ch_3}"},
    {"vram_ch_4", "hwmon/temp{vram_ch_4}"},
    {"vram_ch_5", "hwmon/temp{vram_ch_5}"},
    {"vram_ch_6", "hwmon/temp{vram_ch_6}"},
    {"vram_ch_7", "hwmon/temp{vram_ch_7}"},
    {"vram_ch_8", "hwmon/temp{vram_ch_8}"},
    {"vram_ch_9", "hwmon/temp{vram_ch_9}"},
    {"vram_ch_10", "hwmon/temp{vram_ch_10}"},
    {"vram_ch_11", "hwmon/temp{vram_ch_11}"},
    {"vram_ch_12", "hwmon/temp{vram_ch_12}"},
    {"vram_ch_13", "hwmon/temp{vram_ch_13}"},
    {"vram_ch_14", "hwmon/temp{vram_ch_14}"},
    {"vram_ch_15", "hwmon/temp{vram_ch_15}"},
};

constexpr Row limit_row(const TemperatureSensor& of, std::string_view limit, SensorPart part) noexcept {
  const LabelSet labels("sensor", of.sensor, "limit", limit);
  return {
      &catalog::temperature_limit, labels, temperature(of.file, part), kMilli, Tier::slow, {}, kCelsiusLimit};
}

/// Temperature, three limits and the margin of each sensor.
consteval auto temperature_rows() {
  std::array<Row, 5 * std::size(kTemperatureSensors)> rows{};
  auto* end = rows.data();
  for (const TemperatureSensor& of : kTemperatureSensors) {
    const LabelSet label("sensor", of.sensor);
    *end++ = {&catalog::temperature,
              label,
              temperature(of.file, SensorPart::input),
              kMilli,
              Tier::fast,
              {},
              kCelsius};
    *end++ = limit_row(of, "max", SensorPart::max);
    *end++ = limit_row(of, "critical", SensorPart::critical);
    *end++ = limit_row(of, "emergency", SensorPart::emergency);
    *end++ = {&catalog::temperature_margin, label, margin(of.file), kMilli, Tier::fast};
  }
  return rows;
}
inline constexpr auto kTemperatureRows = temperature_rows();

struct Fan {
  std::string_view fan, file, speed;
};
inline constexpr Fan kFans[] = {{"0", "hwmon/fan1", "hwmon/fan1_input"},
                                {"1", "hwmon/fan2", "hwmon/fan2_input"},
                                {"2", "hwmon/fan3", "hwmon/fan3_input"},
                                {"3", "hwmon/fan4", "hwmon/fan4_input"}};
inline constexpr auto kFanSpeedRows = each(kFans, [](const Fan& of) {
  return Row{&catalog::fan_rpm, {"fan", of.fan}, file(of.speed), 1, Tier::normal, {}, kPositive};
});
inline constexpr auto kFanShareRows = each(kFans, [](const Fan& of) {
  return Row{&catalog::fan_speed, {"fan", of.fan}, fan_share(of.file), 1, Tier::normal, {}, kRatio};
});
inline constexpr auto kFanRows = joined(kFanSpeedRows, kFanShareRows);

}  // namespace gpumeter::intel
