#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/identity.hpp"
#include "collectors/nvidia/readers.hpp"
#include "collectors/nvidia/sources.hpp"

namespace gpumeter::nvidia {
namespace {

using enum PowerSource;

constexpr unsigned kAnyDriver = std::numeric_limits<unsigned>::max();

/// A sensor of one chip: the update period and the averaging window in milliseconds.
struct Measured {
  int capability;          // 10 x major + minor
  std::string_view model;  // part of the name; empty: all cards of the chip
  unsigned first_driver, last_driver;
  PowerSource source;
  double period, window;
};

// Yang, Adamek and Armour, "Part-time power measurements" (arXiv 2312.02741, SC24), by the authors' table
// Overall_Results of JimZeyuYang/GPU_Power_Benchmark. Nobody has published H200, GH200's parts or Blackwell:
// they have no row. The first row that fits holds.
// clang-format off
constexpr Measured kMeasured[] = {
    {90, "H100", 0, kAnyDriver, average, 100, 1000},
    {90, "H100", 0, kAnyDriver, instant, 100, 25},
    {90, "H100", 531, kAnyDriver, usage, 100, 1000},
    {89, "", 0, kAnyDriver, average, 100, 1000},
    {89, "", 0, kAnyDriver, instant, 100, 100},
    {89, "", 530, 530, usage, 100, 100},
    {89, "", 0, kAnyDriver, usage, 100, 1000},
    {86, "", 0, kAnyDriver, average, 100, 1000},
    {86, "", 0, kAnyDriver, instant, 100, 100},
    {86, "", 530, 530, usage, 100, 100},
    {86, "", 0, kAnyDriver, usage, 100, 1000},
    {80, "", 0, kAnyDriver, instant, 100, 25},
    {80, "", 0, kAnyDriver, usage, 100, 25},
    {75, "RTX 8000", 0, kAnyDriver, instant, 100, 20},
    {75, "RTX 8000", 0, kAnyDriver, usage, 100, 20},
    {75, "", 0, kAnyDriver, instant, 100, 100},
    {75, "", 0, kAnyDriver, usage, 100, 100},
    {70, "", 0, kAnyDriver, instant, 20, 10},
    {70, "", 0, kAnyDriver, usage, 20, 10},
    {61, "", 0, kAnyDriver, instant, 20, 10},
    {61, "", 0, kAnyDriver, usage, 20, 10},
    {60, "", 0, kAnyDriver, instant, 20, 10},
    {60, "", 0, kAnyDriver, usage, 20, 10},
};
// clang-format on

// The firmware adds up the counter's energy, so that it misses no time. Its reading is renewed at least this
// often: 20 to 100 ms (alumet, plugin nvidia-nvml), 106 ms on an RTX 4090 (Dauner, HotCarbon'26).
constexpr PowerSensor kCounter{0.106, std::numeric_limits<double>::infinity()};

ReadStatus status_of_source(NvmlCaller& gpu, PowerSource source) {
  constexpr unsigned kFields[] = {
      185, 186, 0, 83};  // NVML_FI_DEV_POWER_AVERAGE, _POWER_INSTANT, _TOTAL_ENERGY_CONSUMPTION
  if (source != usage) return read_field(gpu, kFields[static_cast<std::size_t>(source)], 0).sample.status;
  unsigned milliwatts = 0;
  return status_of(gpu.call<&F::nvmlDeviceGetPowerUsage>(&milliwatts));
}

}  // namespace

double PowerSensor::coverage() const noexcept { return std::min(1.0, window / period); }

// Relative standard uncertainty of the integral of readings over a span: the gain of the board's sensor, the
// two edges of the span, and the time between readings that no window covers. The gains of the boards in
// arXiv 2312.02741 are 0.87 to 1.065; 5 % is typical of them and no bound. Time that no window covers adds an
// error that falls with the root of the readings if the load does not repeat in step with them.
double PowerSensor::energy_uncertainty(double reading_interval, double span) const noexcept {
  constexpr double kGain = 0.05;
  const double apart = std::max(period, reading_interval);
  const double unseen = std::max(0.0, 1 - window / apart);
  return std::hypot(kGain, apart / span, unseen * std::sqrt(apart / span));
}

std::optional<PowerSensor> power_sensor_of(const Facts& card, std::string_view driver,
                                           PowerSource source) noexcept {
  unsigned branch = 0;
  std::from_chars(driver.data(), driver.data() + driver.size(), branch);
  const auto is_of = [&](const Measured& row) {
    return row.capability == card.cc_major * 10 + card.cc_minor &&
           (row.source == source || source == hardware) && card.name.find(row.model) != std::string::npos &&
           branch >= row.first_driver && branch <= row.last_driver;
  };
  const Measured* const found = std::ranges::find_if(kMeasured, is_of);
  if (found == std::end(kMeasured)) return std::nullopt;
  return source == hardware ? kCounter : PowerSensor{found->period / 1000, found->window / 1000};
}

PowerSensors power_sensors(NvmlCaller gpu, const Facts& card, std::string_view driver) {
  PowerSensors sensors;
  for (std::size_t i = 0; i < sensors.size(); ++i) {
    const auto source = static_cast<PowerSource>(i);
    sensors[i] = power_sensor_of(card, driver, source);
    if (sensors[i] && is_lacking(status_of_source(gpu, source))) sensors[i].reset();
  }
  return sensors;
}

namespace {

using Figure = double (*)(const PowerSensor&) noexcept;

template <Figure kFigure>
Reader of_sensor(NvidiaContext& context, const ReadSource& source) {
  const std::optional<PowerSensor>& sensor = context.sensors()[source.argument];
  return sensor ? constant(kFigure(*sensor)) : Reader();
}

// Once a second is the fast tier's usual interval.
double of_an_hour(const PowerSensor& sensor) noexcept { return sensor.energy_uncertainty(1, 3600); }
double period_of(const PowerSensor& sensor) noexcept { return sensor.period; }
double window_of(const PowerSensor& sensor) noexcept { return sensor.window; }
double coverage_of(const PowerSensor& sensor) noexcept { return sensor.coverage(); }

template <Figure kFigure, std::size_t N>
constexpr auto rows_of(const MetricDescriptor& family, const std::string_view (&sources)[N]) {
  return each_place(sources, [&](std::size_t place, std::string_view source) {
    return Row{
        &family, {"source", source}, {of_sensor<kFigure>, "table of power sensors", place}, 1, Tier::once};
  });
}
constexpr std::string_view kReadings[] = {"average", "instant",
                                          "usage"};  // kPowerSources without the counter
// clang-format off
constexpr auto kMeasuredRows = std::to_array<Row>({
    {&catalog::power_sensor_period, {"source", "samples"}, {sample_period, "nvmlDeviceGetSamples power", nvml::kPowerSamples}, 1, Tier::fast, {}, kPositive},
});
// clang-format on
constexpr auto kRows = joined(rows_of<period_of>(catalog::power_sensor_period, kReadings), kMeasuredRows,
                              rows_of<window_of>(catalog::power_sensor_window, kReadings),
                              rows_of<coverage_of>(catalog::power_sensor_coverage, kReadings),
                              rows_of<of_an_hour>(catalog::energy_uncertainty, kPowerSources));
static_assert(valid_table(kRows));

}  // namespace

std::span<const Row> power_sensor_rows() noexcept { return kRows; }

}  // namespace gpumeter::nvidia
