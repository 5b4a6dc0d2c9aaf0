#include "collectors/gaudi/rows.hpp"

#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/tree/link_rows.hpp"

/// Files of the habanalabs driver (Documentation/ABI/testing/sysfs-driver-habanalabs) and its hwmon sensors,
/// whose number the card's firmware decides and which have no labels. Memory and utilisation need the
/// vendor's library, so they are absent.
namespace gpumeter::gaudi {
namespace {

using enum Tier;
using namespace tree;
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
  return {&catalog::mode, {"mode", "status", "state", state}, word(words), 1, normal, {}, kPositive};
}

constexpr auto kDriverRows = std::to_array<Row>({
    status("operational", "**/status = operational"),
    status("in_reset", "**/status = in reset|in reset after device release"),
    status("malfunction", "**/status = malfunction|disabled"),
    status("needs_reset", "**/status = needs reset"),
    status("in_creation", "**/status = in device creation"),
    {&catalog::clock, {"clock", "graphics"}, file("**/clk_cur_freq_mhz"), kMega, fast, {}, kHertz},
    {&catalog::clock_max, {"clock", "graphics"}, file("**/clk_max_freq_mhz"), kMega, slow, {}, kHertz},
    {&catalog::power, {}, file("hwmon/power1_average"), kMicro, fast, averaged(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power, {}, file("hwmon/power1_input"), kMicro, fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power_limit, {"limit", "enforced"}, file("**/max_power"), kMilli, slow, {}, kWattLimit},
    {&catalog::temperature, {"sensor", "core"}, file("hwmon/temp1_input"), kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "*"}, file("hwmon/temp{*}_input", kFromTheSecond), kMilli, fast, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "max"}, file("hwmon/temp1_max"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "critical"}, file("hwmon/temp1_crit"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_margin, {"sensor", "core"}, margin("hwmon/temp1"), kMilli, fast},
    {&catalog::voltage, {"rail", "*"}, file("hwmon/in{*}_input"), kMilli, normal, {}, kVolts},
    {&catalog::fan_rpm, {"fan", "0"}, file("hwmon/fan1_input"), 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset"}, sum("**/*_reset_cnt"), 1, normal, {}, kPositive},
});
// clang-format on

constexpr auto kRows = joined(kDriverRows, kLinkRows);
static_assert(valid_table(kRows));
constexpr Kind kKind = {kRows, {}, {}};

}  // namespace

const Kind& gaudi_kind() noexcept { return kKind; }

std::span<const RowDoc> gaudi_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<TreeContext>({kRows});
  return docs;
}

}  // namespace gpumeter::gaudi
