#include "collectors/amd/gpu_metrics/blob.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "collectors/amd/gpu_metrics/layout.hpp"
#include "collectors/amd/gpu_metrics/units.hpp"

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

}  // namespace gpumeter::amd
