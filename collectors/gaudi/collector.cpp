#include "collectors/gaudi/collector.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/files/context.hpp"
#include "collectors/files/discovery.hpp"
#include "collectors/files/readers.hpp"
#include "collectors/sources/sysfs.hpp"

/// Files of the habanalabs driver (Documentation/ABI/testing/sysfs-driver-habanalabs) and its hwmon sensors,
/// whose number the card's firmware decides and which have no labels. Memory and utilisation need the
/// vendor's library, so they are absent.
namespace gpumeter::gaudi {
namespace {

using enum Tier;
using namespace files;
using gpumeter::Traits;

constexpr Traits kCelsius{.min = -50, .max = 250};
constexpr Traits kLimit{.min = 1, .max = 250, .zero_is_unknown = true};
constexpr Traits kWatts{.min = 0, .max = 5000};
constexpr Traits kWattLimit{.min = 1, .max = 5000, .zero_is_unknown = true};
constexpr Traits kVolts{.min = 0, .max = 100};
constexpr Traits kHertz{.min = 0, .max = 20e9};

constexpr std::uint64_t kFromTheSecond = 2;  // the first is sensor="core"

// clang-format off
// The words of hl_device_status_str and of the ABI document, which differ.
constexpr Row status(std::string_view state, std::string_view words) {
  return {&catalog::mode, {"mode", "status", "state", state}, {word, words}, 1, normal, {}, kPositive};
}

constexpr auto kDriverRows = std::to_array<Row>({
    status("operational", "**/status = operational"),
    status("in_reset", "**/status = in reset|in reset after device release"),
    status("malfunction", "**/status = malfunction|disabled"),
    status("needs_reset", "**/status = needs reset"),
    status("in_creation", "**/status = in device creation"),
    {&catalog::clock, {"clock", "graphics"}, {file, "**/clk_cur_freq_mhz"}, kMega, fast, {}, kHertz},
    {&catalog::clock_max, {"clock", "graphics"}, {file, "**/clk_max_freq_mhz"}, kMega, slow, {}, kHertz},
    {&catalog::power, {}, {file, "hwmon/power1_average"}, kMicro, fast, averaged(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power, {}, {file, "hwmon/power1_input"}, kMicro, fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power_limit, {"limit", "enforced"}, {file, "**/max_power"}, kMilli, slow, {}, kWattLimit},
    {&catalog::temperature, {"sensor", "core"}, {file, "hwmon/temp1_input"}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "*"}, {file, "hwmon/temp{*}_input", kFromTheSecond}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "max"}, {file, "hwmon/temp1_max"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "critical"}, {file, "hwmon/temp1_crit"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_margin, {"sensor", "core"}, {margin, "hwmon/temp1", Limits::all}, kMilli, fast},
    {&catalog::voltage, {"rail", "*"}, {file, "hwmon/in{*}_input"}, kMilli, normal, {}, kVolts},
    {&catalog::fan_rpm, {"fan", "0"}, {file, "hwmon/fan1_input"}, 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset"}, {sum, "**/*_reset_cnt"}, 1, normal, {}, kPositive},
});
// clang-format on

constexpr auto kGaudiRows = joined(kDriverRows, kLinkRows);
static_assert(valid_table(kGaudiRows));
constexpr Kind kGaudiKind = {.rows = kGaudiRows};

/// The files are in the PCI function's folder or, with older kernels, in that of the node below.
DeviceInfo identify(const ClassDevice& device) {
  const FileIndex index(device.folder);
  const std::string type = index.text("device_type");
  DeviceInfo info = described(device);
  if (!device.function) info.pci_address = index.text("pci_addr");
  if (!info.pci_address.empty()) info.uuid = info.pci_address;
  info.vendor = "intel";
  info.model = type.empty() ? "Gaudi" : type;
  info.driver = "habanalabs";
  info.driver_version = index.text("driver_ver");
  info.vbios_version = index.text("uboot_ver");
  info.firmware_version = index.text("armcp_ver");
  info.vendor_index = index.text("module_id");
  return info;
}

class GaudiCollector final : public Collector {
 public:
  explicit GaudiCollector(const CollectorContext& context)
      : roots_{context.sysfs_root, context.procfs_root},
        cards_("find-gaudi", *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    std::map<std::string, ClassDevice> cards;
    for (ClassDevice& device : devices_of_class(roots_.sysfs, "accel")) {
      if (device.driver.starts_with("habanalabs")) cards.emplace(device.name, std::move(device));
    }
    for (ClassDevice& device : devices_of_class(roots_.sysfs, "habanalabs")) {
      if (!device.node.starts_with("hl_controlD")) cards.emplace(device.name, std::move(device));
    }
    std::vector<std::string> names;
    for (const auto& [name, card] : cards) names.push_back(name);
    Discovery found;
    cards_.identify(
        names, {}, [cards](const std::string& name) { return identify(cards.at(name)); }, found);
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override { return make_device(kGaudiKind, roots_); }

 private:
  const Roots roots_;
  Identifier cards_;
};

}  // namespace

std::span<const RowDoc> gaudi_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<Context>({kGaudiRows});
  return docs;
}

Result<std::unique_ptr<Collector>> open_gaudi(const CollectorContext& context) {
  return std::unique_ptr<Collector>(std::make_unique<GaudiCollector>(context));
}

}  // namespace gpumeter::gaudi
