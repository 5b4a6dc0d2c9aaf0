#include "collectors/amd/gpu_metrics_blob.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

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

/// The driver copies its own struct out, so the bytes are in the machine's order.
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

// By division where the factor is below 1: 1e-3 has no exact double, 1e3 has.
double to_base(double value, BlobUnit unit) noexcept {
  switch (unit) {
    case BlobUnit::percent:
      return value / 1e2;
    case BlobUnit::megahertz:
      return value * 1e6;
    case BlobUnit::millivolts:
      return value / 1e3;
    case BlobUnit::nanoseconds:
      return value / 1e9;
    case BlobUnit::ticks_of_10_nanoseconds:
      return value / 1e8;
    case BlobUnit::decigigatransfers:
      return value * 1e8;
    case BlobUnit::none:
    case BlobUnit::celsius:
    case BlobUnit::watts:
    case BlobUnit::rpm:
      return value;
  }
  return value;
}

bool zero_is_absent(BlobUnit unit) noexcept {
  return unit == BlobUnit::celsius || unit == BlobUnit::millivolts;
}

}  // namespace

ReadStatus GpuMetricsBlob::read(const sysfs::File& file) noexcept {
  const sysfs::Bytes got = file.read(bytes_);
  if (got.status == ReadStatus::ok) return accept(got.size);
  layout_ = nullptr;
  return status_ = got.status;
}

ReadStatus GpuMetricsBlob::parse(std::span<const char> bytes) noexcept {
  const std::size_t size = std::min(bytes.size(), kMaxSize);
  std::copy_n(bytes.begin(), size, bytes_.begin());
  return accept(size);
}

ReadStatus GpuMetricsBlob::accept(std::size_t size) noexcept {
  layout_ = nullptr;
  if (size == 0) return status_ = ReadStatus::unsupported;
  if (size < kHeaderSize) return status_ = ReadStatus::failed;
  const std::uint64_t structure_size = load(bytes_.data(), 2);
  if (structure_size < kHeaderSize || structure_size > size) return status_ = ReadStatus::failed;
  const auto format = static_cast<std::uint8_t>(bytes_[2]);
  const auto content = static_cast<std::uint8_t>(bytes_[3]);
  for (const BlobLayout& layout : blob_layouts()) {
    if (layout.format != format || layout.content != content) continue;
    if (structure_size < layout.size) return status_ = ReadStatus::failed;
    layout_ = &layout;
    return status_ = ReadStatus::ok;
  }
  return status_ = ReadStatus::unsupported;
}

bool GpuMetricsBlob::has(std::size_t field) const noexcept {
  return layout_ != nullptr && layout_->places[field].width != 0;
}

std::uint64_t GpuMetricsBlob::raw(const BlobPlace& place, std::size_t element) const noexcept {
  if (element >= place.count) return kAbsent;
  const std::uint64_t value = load(&bytes_[place.offset + element * place.width], place.width);
  const std::uint64_t all_ones = kAbsent >> (64 - 8 * place.width);
  return value == all_ones ? kAbsent : value;
}

Sample GpuMetricsBlob::value(std::size_t field, std::size_t element) const noexcept {
  if (layout_ == nullptr) return Sample::miss(status_);
  const BlobPlace& place = layout_->places[field];
  const std::uint64_t value = raw(place, element);
  if (value == kAbsent || (value == 0 && zero_is_absent(place.unit))) {
    return Sample::miss(ReadStatus::unsupported);
  }
  return Sample::of(to_base(static_cast<double>(value), place.unit));
}

Sample GpuMetricsBlob::any_of(std::size_t field, std::uint64_t mask) const noexcept {
  if (layout_ == nullptr) return Sample::miss(status_);
  const std::uint64_t bits = raw(layout_->places[field], 0);
  return bits == kAbsent ? Sample::miss(ReadStatus::unsupported) : Sample::of((bits & mask) != 0 ? 1 : 0);
}

}  // namespace gpumeter::amd
