#include "collectors/amd/gpu_metrics.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>

namespace gpumeter::amd {
namespace {

constexpr std::uint64_t kAbsent = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kHeaderSize = 4;  // u16 structure_size, u8 format_revision, u8 content_revision

template <class T>
std::uint64_t load(const char* bytes) noexcept {
  T value{};
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// The driver copies its own struct, so the bytes are in the machine's order.
std::uint64_t load(const char* bytes, std::size_t width) noexcept {
  switch (width) {
    case 1:
      return load<std::uint8_t>(bytes);
    case 2:
      return load<std::uint16_t>(bytes);
    case 4:
      return load<std::uint32_t>(bytes);
    default:
      return load<std::uint64_t>(bytes);
  }
}

double number(std::uint64_t bits, const BlobPlace& place) noexcept {
  if (!place.is_signed) return static_cast<double>(bits);
  const int unused = 64 - 8 * place.width;
  return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

Sample sample(std::uint64_t bits, const BlobPlace& place) noexcept {
  const bool absent = bits == kAbsent || (bits == 0 && zero_is_absent(place.unit));
  if (absent || place.unit == BlobUnit::uncertain) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(to_base(number(bits, place), place.unit));
}

// gpu_metrics 1.9, which describes itself (amdgpu of 2025-09 on: MI300, MI350, MI450). After the header
// follows an s32 with the number of attributes. Each attribute is a u64 with unit, type, id and number of
// elements, followed by its elements, without any padding.
constexpr int kAttributesFormat = 1;
constexpr int kAttributesContent = 9;

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

/// Finds the places of the fields in `bytes`, which begin with the header and end with the structure. Fields
/// are matched by id alone: the same field occurs as u32 and u64, and as one value and as eight. Unknown
/// attributes are skipped. Returns false if the bytes are truncated or inconsistent; `places` is then
/// meaningless.
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

constexpr std::size_t kCycles = known_blob_field("accumulation_counter");
constexpr std::size_t kClock = known_blob_field("firmware_timestamp");

/// Growth of a counter of `bits` bits, including a wrap.
std::uint64_t growth(std::uint64_t last, std::uint64_t now, int bits) noexcept {
  return (now - last) & (~std::uint64_t{0} >> (64 - bits));
}

}  // namespace

// A kernel returns at most a page less one byte per read.
ReadStatus GpuMetricsBlob::read(const sysfs::File& file) noexcept {
  std::size_t size = 0;
  std::size_t wanted = kHeaderSize;
  while (size < wanted) {
    const sysfs::Bytes got = file.read(std::span(bytes_).subspan(size), size);
    if (got.status != ReadStatus::ok) {
      layout_ = &kNoFields;
      return status_ = got.status;
    }
    if (got.size == 0) break;
    size += got.size;
    if (size >= kHeaderSize) wanted = std::min<std::size_t>(load(bytes_.data(), 2), kMaxSize);
  }
  return accept(size);
}

ReadStatus GpuMetricsBlob::parse(std::span<const char> bytes) noexcept {
  const std::size_t size = std::min(bytes.size(), kMaxSize);
  std::copy_n(bytes.begin(), size, bytes_.begin());
  return accept(size);
}

ReadStatus GpuMetricsBlob::accept(std::size_t size) noexcept {
  layout_ = &kNoFields;
  if (size == 0) return status_ = ReadStatus::unsupported;
  if (size < kHeaderSize) return status_ = ReadStatus::failed;
  const std::uint64_t structure_size = load(bytes_.data(), 2);
  if (structure_size < kHeaderSize || structure_size > size) return status_ = ReadStatus::failed;
  return status_ = choose_places(structure_size);
}

ReadStatus GpuMetricsBlob::choose_places(std::size_t structure_size) noexcept {
  const auto format = static_cast<std::uint8_t>(bytes_[2]);
  const auto content = static_cast<std::uint8_t>(bytes_[3]);
  if (format == kAttributesFormat && content == kAttributesContent) {
    if (!find_attributes(std::span(bytes_).first(structure_size), own_places_)) return ReadStatus::failed;
    layout_ = nullptr;
    return ReadStatus::ok;
  }
  for (const BlobLayout& layout : blob_layouts()) {
    if (layout.format != format || layout.content != content) continue;
    if (structure_size < layout.size) return ReadStatus::failed;
    layout_ = &layout;
    return ReadStatus::ok;
  }
  return ReadStatus::unsupported;
}

bool GpuMetricsBlob::has(std::size_t field, std::size_t element) const noexcept {
  return holds(field, element) && places()[field].unit != BlobUnit::uncertain;
}

std::uint64_t GpuMetricsBlob::bits_of(const BlobPlace& place, std::size_t element,
                                      std::size_t instance) const noexcept {
  if (place.width == 0 || element >= place.count || instance >= place.instances) return kAbsent;
  const std::size_t offset = place.offset + instance * place.stride + element * place.width;
  const std::uint64_t value = load(&bytes_[offset], place.width);
  const std::uint64_t all_ones = kAbsent >> (64 - 8 * place.width);
  return value == all_ones ? kAbsent : value;
}

Sample GpuMetricsBlob::value(std::size_t field, std::size_t element, std::size_t instance) const noexcept {
  if (status_ != ReadStatus::ok) return Sample::miss(status_);
  const BlobPlace& place = places()[field];
  return sample(bits_of(place, element, instance), place);
}

Sample GpuMetricsBlob::value(std::size_t field) const noexcept {
  if (status_ != ReadStatus::ok) return Sample::miss(status_);
  for (std::size_t i = 0; i < places()[field].count; ++i) {
    const Sample element = value(field, i);
    if (element.status == ReadStatus::ok) return element;
  }
  return Sample::miss(ReadStatus::unsupported);
}

Sample GpuMetricsBlob::sum(std::size_t field) const noexcept {
  Sample total = Sample::miss(status_ == ReadStatus::ok ? ReadStatus::unsupported : status_);
  for (std::size_t i = 0; i < places()[field].count; ++i) {
    const Sample element = value(field, i);
    if (element.status != ReadStatus::ok) continue;
    total = Sample::of(total.status == ReadStatus::ok ? total.value + element.value : element.value);
  }
  return total;
}

Sample GpuMetricsBlob::highest_in(std::size_t field, std::size_t begin, std::size_t end,
                                  std::size_t instance) const noexcept {
  Sample highest = Sample::miss(status_ == ReadStatus::ok ? ReadStatus::unsupported : status_);
  for (std::size_t i = begin; i < end; ++i) {
    const Sample element = value(field, i, instance);
    if (element.status != ReadStatus::ok) continue;
    if (highest.status != ReadStatus::ok || element.value > highest.value) highest = element;
  }
  return highest;
}

Sample GpuMetricsBlob::highest(std::size_t field) const noexcept {
  const BlobPlace& place = places()[field];
  Sample highest = highest_in(field, 0, place.count, 0);
  for (std::size_t i = 1; i < place.instances; ++i) {
    const Sample other = highest_in(field, 0, place.count, i);
    if (other.status == ReadStatus::ok && (highest.status != ReadStatus::ok || other.value > highest.value)) {
      highest = other;
    }
  }
  return highest;
}

Sample GpuMetricsBlob::highest(std::size_t field, std::size_t part, std::size_t parts) const noexcept {
  const BlobPlace& place = places()[field];
  if (place.instances > 1) return highest_in(field, 0, place.count, part);
  const std::size_t share = place.count / parts;
  return highest_in(field, part * share, (part + 1) * share, 0);
}

Sample GpuMetricsBlob::count_of(std::size_t field, std::uint64_t mask) const noexcept {
  if (status_ != ReadStatus::ok) return Sample::miss(status_);
  bool reported = false;
  int count = 0;
  for (std::size_t i = 0; i < places()[field].count; ++i) {
    const std::optional<std::uint64_t> state = raw(field, i);
    reported = reported || state.has_value();
    if (state && *state < 64 && (mask >> *state & 1) != 0) ++count;
  }
  return reported ? Sample::of(count) : Sample::miss(ReadStatus::unsupported);
}

GpuMetricsBlob::Flags GpuMetricsBlob::flags(std::size_t field) const noexcept {
  if (status_ != ReadStatus::ok) return {0, status_};
  const std::optional<std::uint64_t> bits = raw(field);
  return bits ? Flags{*bits, ReadStatus::ok} : Flags{};
}

std::optional<std::uint64_t> GpuMetricsBlob::raw(std::size_t field, std::size_t element) const noexcept {
  if (status_ != ReadStatus::ok) return std::nullopt;
  const std::uint64_t value = bits_of(places()[field], element, 0);
  return value == kAbsent ? std::nullopt : std::optional(value);
}

std::optional<std::uint64_t> GpuMetricsBlob::of_die(std::size_t field, std::size_t die) const noexcept {
  const BlobPlace& place = places()[field];
  if (status_ != ReadStatus::ok || place.count == 0) return std::nullopt;
  for (std::size_t i = 0; i < std::size_t{place.count} * place.instances; ++i) {
    const std::uint64_t value = bits_of(place, i % place.count, i / place.count);
    if (value != kAbsent && die-- == 0) return value;
  }
  return std::nullopt;
}

Sample Residency::advance(const GpuMetricsBlob& blob) noexcept {
  if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
  const std::optional<Reading> now = read(blob);
  if (!now) return Sample::miss(ReadStatus::unsupported);
  total_ += grown(blob, *now);
  last_ = now;
  return Sample::of(total_);
}

std::optional<Residency::Reading> Residency::read(const GpuMetricsBlob& blob) const noexcept {
  const std::optional<std::uint64_t> cycles = blob.raw(kCycles);
  const Sample clock = blob.value(kClock);
  if (!cycles || clock.status != ReadStatus::ok) return std::nullopt;
  Reading reading{*cycles, clock.value, {}};
  for (std::size_t i = 0; i < kMostCounters; ++i) {
    if (counters_[i].field == kBlobFieldCount) continue;
    const std::optional<std::uint64_t> count = blob.of_die(counters_[i].field, counters_[i].die);
    if (!count) return std::nullopt;
    reading.counts[i] = *count;
  }
  return reading;
}

// The firmware was restarted if its clock went back, or if a counter grew much more than the cycles. It
// overshoots 100 % a little at full load.
double Residency::grown(const GpuMetricsBlob& blob, const Reading& now) const noexcept {
  constexpr double kFull = 100;
  constexpr double kOvershoot = 2;
  if (!last_ || now.seconds <= last_->seconds) return 0;
  const auto cycles = static_cast<double>(growth(last_->cycles, now.cycles, blob.bits(kCycles)));
  double share = 0;
  for (std::size_t i = 0; i < kMostCounters; ++i) {
    const std::size_t field = counters_[i].field;
    if (field == kBlobFieldCount) continue;
    const double whole = cycles * (fields::kAll[field].unit == BlobUnit::percent ? kFull : 1);
    share = std::max(share,
                     static_cast<double>(growth(last_->counts[i], now.counts[i], blob.bits(field))) / whole);
  }
  const bool is_possible = cycles > 0 && share <= kOvershoot;
  return is_possible ? (now.seconds - last_->seconds) * std::min(share, 1.0) : 0;
}

}  // namespace gpumeter::amd
