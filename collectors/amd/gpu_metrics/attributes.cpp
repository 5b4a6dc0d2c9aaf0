#include <array>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "collectors/amd/gpu_metrics/layout.hpp"

namespace gpumeter::amd {
namespace {

/// Fields in the order of their ids, enum amdgpu_metrics_attr_id.
constexpr std::string_view kNames =
    "temperature_hotspot temperature_mem temperature_vrsoc curr_socket_power average_gfx_activity "
    "average_umc_activity mem_max_bandwidth energy_accumulator system_clock_counter accumulation_counter "
    "prochot_residency_acc ppt_residency_acc socket_thm_residency_acc vr_thm_residency_acc "
    "hbm_thm_residency_acc gfxclk_lock_status pcie_link_width pcie_link_speed xgmi_link_width "
    "xgmi_link_speed gfx_activity_acc mem_activity_acc pcie_bandwidth_acc pcie_bandwidth_inst "
    "pcie_l0_to_recov_count_acc pcie_replay_count_acc pcie_replay_rover_count_acc pcie_nak_sent_count_acc "
    "pcie_nak_rcvd_count_acc xgmi_read_data_acc xgmi_write_data_acc xgmi_link_status firmware_timestamp "
    "current_gfxclk current_socclk current_vclk0 current_dclk0 current_uclk num_partition "
    "pcie_lc_perf_other_end_recovery gfx_busy_inst jpeg_busy vcn_busy gfx_busy_acc "
    "gfx_below_host_limit_ppt_acc gfx_below_host_limit_thm_acc gfx_low_utilization_acc "
    "gfx_below_host_limit_total_acc temperature_hbm temperature_mid temperature_aid temperature_xcd";

consteval auto fields_of_ids() {
  std::array<std::size_t, 52> fields{};
  std::string_view names = kNames;
  for (std::size_t& field : fields) field = known_blob_field(next_word(names));
  if (!names.empty()) throw std::logic_error("more names than ids");
  return fields;
}
constexpr auto kFieldOfId = fields_of_ids();

constexpr std::size_t kCountOffset = 4;  // after the header
constexpr std::uint64_t kLastUnit = 10;  // 0 none, 1 MHz, ... 10 %
constexpr std::uint64_t kLastType = 7;   // 0 u8, 1 s8, 2 u16, ... 7 s64

struct Encoding {
  std::uint64_t unit, type, id, count;
  std::size_t width() const noexcept { return std::size_t{1} << type / 2; }
};

Encoding decoded(std::uint64_t bits) noexcept {
  return {bits >> 24 & 0xff, bits >> 20 & 0xf, bits >> 10 & 0x3ff, bits & 0x3ff};
}

/// Reads values in sequence, never beyond the end.
class Cursor {
 public:
  explicit Cursor(std::span<const char> bytes, std::size_t at) noexcept : bytes_(bytes), at_(at) {}

  template <class T>
  bool take(T& value) noexcept {
    if (!has(sizeof value)) return false;
    std::memcpy(&value, &bytes_[at_], sizeof value);  // entries may lie at odd addresses
    at_ += sizeof value;
    return true;
  }

  bool skip(std::size_t size) noexcept {
    if (!has(size)) return false;
    at_ += size;
    return true;
  }

  std::size_t at() const noexcept { return at_; }

 private:
  bool has(std::size_t size) const noexcept { return at_ <= bytes_.size() && size <= bytes_.size() - at_; }

  std::span<const char> bytes_;
  std::size_t at_;
};

// A unit newer than this table is skipped: no value is better than a wrong one.
void place(const Encoding& encoding, std::size_t offset, BlobPlaces& places) noexcept {
  if (encoding.id >= std::size(kFieldOfId) || encoding.unit > kLastUnit) return;
  const std::size_t field = kFieldOfId[encoding.id];
  places[field] = {static_cast<std::uint16_t>(offset),
                   static_cast<std::uint16_t>(encoding.count),
                   0,
                   1,
                   static_cast<std::uint8_t>(encoding.width()),
                   encoding.type % 2 == 1,
                   blob_unit(field, kAttributesFormat, kAttributesContent)};
}

}  // namespace

bool find_attributes(std::span<const char> bytes, BlobPlaces& places) noexcept {
  places = {};
  Cursor cursor(bytes, kCountOffset);
  std::int32_t count = 0;
  if (!cursor.take(count) || count < 0) return false;
  for (std::int32_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    if (!cursor.take(bits)) return false;
    const Encoding encoding = decoded(bits);
    if (encoding.count == 0 || encoding.type > kLastType) return false;  // its length is unknown
    const std::size_t offset = cursor.at();
    if (!cursor.skip(encoding.count * encoding.width())) return false;
    place(encoding, offset, places);
  }
  return true;
}

}  // namespace gpumeter::amd
