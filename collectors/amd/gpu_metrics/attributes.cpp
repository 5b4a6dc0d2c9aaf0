#include "collectors/amd/gpu_metrics/attributes.hpp"

#include <cstring>
#include <iterator>

namespace gpumeter::amd {
namespace {

/// Fields in the order of their ids, enum amdgpu_metrics_attr_id.
constexpr std::size_t kFieldOfId[] = {
    known_blob_field("temperature_hotspot"),
    known_blob_field("temperature_mem"),
    known_blob_field("temperature_vrsoc"),
    known_blob_field("curr_socket_power"),
    known_blob_field("average_gfx_activity"),
    known_blob_field("average_umc_activity"),
    known_blob_field("mem_max_bandwidth"),
    known_blob_field("energy_accumulator"),
    known_blob_field("system_clock_counter"),
    known_blob_field("accumulation_counter"),
    known_blob_field("prochot_residency_acc"),
    known_blob_field("ppt_residency_acc"),
    known_blob_field("socket_thm_residency_acc"),
    known_blob_field("vr_thm_residency_acc"),
    known_blob_field("hbm_thm_residency_acc"),
    known_blob_field("gfxclk_lock_status"),
    known_blob_field("pcie_link_width"),
    known_blob_field("pcie_link_speed"),
    known_blob_field("xgmi_link_width"),
    known_blob_field("xgmi_link_speed"),
    known_blob_field("gfx_activity_acc"),
    known_blob_field("mem_activity_acc"),
    known_blob_field("pcie_bandwidth_acc"),
    known_blob_field("pcie_bandwidth_inst"),
    known_blob_field("pcie_l0_to_recov_count_acc"),
    known_blob_field("pcie_replay_count_acc"),
    known_blob_field("pcie_replay_rover_count_acc"),
    known_blob_field("pcie_nak_sent_count_acc"),
    known_blob_field("pcie_nak_rcvd_count_acc"),
    known_blob_field("xgmi_read_data_acc"),
    known_blob_field("xgmi_write_data_acc"),
    known_blob_field("xgmi_link_status"),
    known_blob_field("firmware_timestamp"),
    known_blob_field("current_gfxclk"),
    known_blob_field("current_socclk"),
    known_blob_field("current_vclk0"),
    known_blob_field("current_dclk0"),
    known_blob_field("current_uclk"),
    known_blob_field("num_partition"),
    known_blob_field("pcie_lc_perf_other_end_recovery"),
    known_blob_field("gfx_busy_inst"),
    known_blob_field("jpeg_busy"),
    known_blob_field("vcn_busy"),
    known_blob_field("gfx_busy_acc"),
    known_blob_field("gfx_below_host_limit_ppt_acc"),
    known_blob_field("gfx_below_host_limit_thm_acc"),
    known_blob_field("gfx_low_utilization_acc"),
    known_blob_field("gfx_below_host_limit_total_acc"),
    known_blob_field("temperature_hbm"),
    known_blob_field("temperature_mid"),
    known_blob_field("temperature_aid"),
    known_blob_field("temperature_xcd"),
};

constexpr std::size_t kCountOffset = 4;  // behind the header
constexpr std::uint64_t kLastUnit = 10;  // 0 none, 1 MHz, ... 10 %
constexpr std::uint64_t kLastType = 7;   // 0 u8, 1 s8, 2 u16, ... 7 s64

struct Encoding {
  std::uint64_t unit, type, id, count;
  std::size_t width() const noexcept { return std::size_t{1} << type / 2; }
};

Encoding decoded(std::uint64_t bits) noexcept {
  return {bits >> 24 & 0xff, bits >> 20 & 0xf, bits >> 10 & 0x3ff, bits & 0x3ff};
}

/// Reads one value after the other, never behind the end.
class Cursor {
 public:
  explicit Cursor(std::span<const char> bytes, std::size_t at) noexcept : bytes_(bytes), at_(at) {}

  template <class T>
  bool take(T& value) noexcept {
    if (!has(sizeof value)) return false;
    std::memcpy(&value, &bytes_[at_], sizeof value);  // entries lie at odd addresses
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

// A unit of later times is left alone: better no value than a wrong one.
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
    if (encoding.count == 0 || encoding.type > kLastType) return false;  // nobody knows how long it is
    const std::size_t offset = cursor.at();
    if (!cursor.skip(encoding.count * encoding.width())) return false;
    place(encoding, offset, places);
  }
  return true;
}

}  // namespace gpumeter::amd
