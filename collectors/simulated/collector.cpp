#include "collectors/simulated/collector.hpp"

#include <string>
#include <utility>

#include "base/text.hpp"
#include "collectors/simulated/context.hpp"
#include "collectors/simulated/metrics.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::simulated {
namespace {

// No value may be mistaken for that of a real card.
DeviceInfo info_of(std::uint64_t seed, std::size_t device, bool has_other_driver) {
  const std::string number = std::to_string(device);
  const std::string uuid = "SIM-" + std::to_string(seed) + "-" + number;
  DeviceInfo info;
  info.uuid = uuid;
  info.vendor = "simulated";
  info.model = "Simulated GPU";
  info.serial = "serial-of-" + uuid;
  info.driver = "simulated";
  info.driver_version = has_other_driver ? "simulated, another" : "simulated";
  info.vbios_version = "simulated";
  info.firmware_version = "simulated";
  info.architecture = "simulated";
  info.vendor_index = number;
  info.compute_units = 132;
  info.source = number;
  return info;
}

class SimulatedCollector final : public Collector {
 public:
  SimulatedCollector(const Settings& settings, const CollectorContext& context)
      : seed_(settings.seed),
        simulation_(std::make_shared<const Simulation>(settings, *context.clock, context.procfs_root)) {}

  Result<Discovery> discover() override {
    Discovery found;
    const Nanoseconds now = simulation_->now();
    for (std::size_t i = 0; i < simulation_->devices().size(); ++i) {
      const Timeline& timeline = simulation_->devices()[i].timeline();
      if (timeline.holds(Event::Kind::lose, now)) continue;
      found.devices.push_back(info_of(seed_, i, timeline.holds(Event::Kind::driver, now)));
    }
    found.notes.emplace_back("these GPUs are simulated: their numbers are made up");
    return found;
  }

  // `info` comes from discover(), so its source is the number of a device.
  std::unique_ptr<Device> device(const DeviceInfo& info) override {
    const std::size_t number = parse_number<std::size_t>(info.source).value_or(0);
    return std::make_unique<ListingDevice<SimulatedContext>>(SimulatedContext(simulation_, number),
                                                             simulated_rows());
  }

 private:
  const std::uint64_t seed_;
  const std::shared_ptr<const Simulation> simulation_;
};

}  // namespace

std::optional<OptionProblem> check_simulated(const CollectorContext& context) {
  const auto read = read_settings(context.options);
  if (const auto* problem = std::get_if<OptionProblem>(&read)) return *problem;
  return std::nullopt;
}

Result<std::unique_ptr<Collector>> open_simulated(const CollectorContext& context) {
  const Result<Settings> settings = parse_settings(context.options);
  if (!settings) return settings.error();
  std::unique_ptr<Collector> collector = std::make_unique<SimulatedCollector>(*settings, context);
  return collector;
}

}  // namespace gpumeter::simulated
