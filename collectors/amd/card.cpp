#include "collectors/amd/card.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/drm.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {

void AmdCard::open(files::Context& context, const DeviceInfo& info, const files::PowerState&) {
  *this = AmdCard(std::move(sysfs_root_), std::move(options_));
  context_ = &context;
  uuid_ = info.uuid;
  blob_file_ = sysfs::File(info.source + "/gpu_metrics");
  find_memory();
  find_topology(info);
}

void AmdCard::close() noexcept {
  if (events_) options_.events->forget(uuid_);
  *this = AmdCard(std::move(sysfs_root_), std::move(options_));
}

// Only APUs have the sensor vddnb (kernel 6.12, amdgpu_pm.c, hwmon_attributes_visible). Their video memory is
// a part of the host's, and most buffers are in the rest of it.
void AmdCard::find_memory() {
  busy_ = context_->number_file("gpu_busy_percent");
  memory_used_ = context_->number_file("mem_info_vram_used");
  if (!context_->paths().resolve("hwmon/in{vddnb}_input")) return;
  gtt_used_ = context_->number_file("mem_info_gtt_used");
  context_->count_memory(fdinfo::MemoryKind::all);
}

// Runs last: the number of partitions may come from gpu_metrics, which is not read from a sleeping card.
void AmdCard::find_topology(const DeviceInfo& info) {
  static constexpr std::size_t kCount = known_blob_field("num_partition");
  const std::optional<pci::Function> function = pci::read_function(info.source);
  if (!function) return;
  chip_ = chip_of(function->device);
  const std::vector<KfdNode> nodes = kfd_nodes_of(
      kfd_nodes(sysfs_root_), {function->address, function->device, drm::nodes_of(function->path).render});
  kfd_ = kfd_whole(nodes);
  processes_.open(sysfs_root_, nodes);
  std::vector<std::uint32_t> gpu_ids;
  for (const KfdNode& node : nodes) gpu_ids.push_back(node.gpu_id);
  if (options_.events && !gpu_ids.empty()) events_ = options_.events->listen(uuid_, gpu_ids);
  users_ = ComputeUsers(sysfs_root_, std::move(gpu_ids));
  const std::uint64_t reported = context_->awake() ? blob().raw(kCount).value_or(0) : 0;
  std::vector<Partition> partitions;
  for (AmdPartition& part : partitions_of(partition_modes(info.source), nodes, reported)) {
    partitions.push_back(std::move(part.partition));
    partition_nodes_.push_back(part.node);
  }
  context_->divide(std::move(partitions));
}

bool AmdCard::is_used() noexcept { return memory_has_changed() || users_.any(); }

bool AmdCard::memory_has_changed() noexcept {
  if (!memory_used_) return false;
  const Sample used = context_->number(*memory_used_);
  if (used.status != ReadStatus::ok) return false;
  return std::exchange(last_memory_used_, used.value) != used.value;
}

// The rows of this pass read the same value, so the check costs no further call. A card that has neither
// source is judged by its memory alone.
bool AmdCard::is_busy() noexcept {
  static constexpr std::size_t kActivity = blob_field("average_gfx_activity");
  const Sample busy = busy_ ? context_->number(*busy_) : blob().value(kActivity);
  return busy.status == ReadStatus::ok && busy.value > 0;
}

bool AmdCard::is_unread() noexcept {
  return context_->awake() && blob_file_.status() != ReadStatus::gone && blob().status() != ReadStatus::ok;
}

ReadStatus AmdCard::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  processes_.allow_hardware(context_->is_read());
  return processes_.read(pass, out);
}

// amdgpu reads both from its own accounting, so that no card wakes.
std::optional<double> AmdCard::memory_in_use() noexcept {
  const Sample vram = memory_used_ ? context_->number(*memory_used_) : Sample::miss(ReadStatus::unsupported);
  if (vram.status != ReadStatus::ok) return std::nullopt;
  if (!gtt_used_) return vram.value;
  const Sample gtt = context_->number(*gtt_used_);
  return gtt.status == ReadStatus::ok ? std::optional(vram.value + gtt.value) : std::nullopt;
}

bool AmdCard::has_blob_field(std::size_t field, std::size_t element) noexcept {
  if (blob_file_.status() == ReadStatus::gone || is_never_filled(chip_, fields::kAll[field].name))
    return false;
  return !context_->awake() || blob().has(field, element);
}

void AmdCard::read_blob() noexcept {
  static constexpr std::size_t kIndependent = known_blob_field("indep_throttle_status");
  static constexpr std::size_t kOfChip = known_blob_field("throttle_status");
  if (blob_file_.status() != ReadStatus::ok) blob_file_.retry();
  blob_.read(blob_file_);
  blob_is_fresh_ = true;
  throttlers_ = {blob_.flags(kIndependent), blob_.flags(kOfChip)};
}

namespace {

struct Level {
  double megahertz = 0;
  bool marked = false;
};

std::optional<Level> parse_level(std::string_view line) noexcept {
  take_until(line, ':');
  line = trimmed(line);
  const auto megahertz = take_number<std::uint32_t>(line);
  if (!megahertz || !line.starts_with("Mhz")) return std::nullopt;
  return Level{static_cast<double>(*megahertz), line.ends_with('*')};
}

/// Calls `take` with the result of `parse` for each line that parses, until `take` returns true.
template <class Parse, class Take>
bool any_line(std::string_view text, Parse parse, Take take) noexcept {
  while (!text.empty()) {
    const auto parsed = parse(take_until(text, '\n'));
    if (parsed && take(*parsed)) return true;
  }
  return false;
}

}  // namespace

std::optional<double> highest_level(std::string_view text) noexcept {
  std::optional<double> highest;
  any_line(text, parse_level, [&](const Level& level) {
    highest = std::max(highest.value_or(0), level.megahertz);
    return false;
  });
  return highest;
}

std::optional<double> current_level(std::string_view text) noexcept {
  std::optional<double> current;
  any_line(text, parse_level, [&](const Level& level) {
    if (level.marked) current = level.megahertz;
    return level.marked;
  });
  return current;
}

std::optional<double> sum_of_links(std::string_view text) noexcept {
  double sum = 0;
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto links = parse_number<unsigned>(take_until(text, ' '), 16);
    if (!links) return std::nullopt;
    sum += *links;
  }
  return sum;
}

namespace {

using files::Context;
using files::probed;
using readers::BlobElement;

AmdCard& card_of(Context& context) noexcept { return context.attached<AmdCard>(); }

// amdgpu passes on the firmware's value, which at full load can be slightly above 100 (kernels of 2026 clamp
// it themselves). A value far above 100 is not a percentage; the row's range rejects it.
constexpr double kFull = 100;
constexpr double kOvershoot = 2 * kFull;

Reader constant_if(const std::optional<double>& value) {
  return value ? gpumeter::constant(*value) : Reader();
}

constexpr std::size_t kIndependentThrottle = known_blob_field("indep_throttle_status");
constexpr std::size_t kChipThrottle = known_blob_field("throttle_status");
constexpr std::size_t kEnergy = known_blob_field("energy_accumulator");
constexpr std::size_t kMemoryActivity = known_blob_field("average_umc_activity");
constexpr std::size_t kLinkStatus = known_blob_field("xgmi_link_status");
constexpr std::size_t kPowerSince1_4 = known_blob_field("curr_socket_power");

/// "gpu_metrics.a | gpu_metrics.b", of a die; all names in the table are known.
Residency::Counters counters_of(std::string_view names, std::size_t die) {
  constexpr std::string_view kBar = " | ";
  Residency::Counters counters;
  for (Residency::Counter& counter : counters) {
    if (names.empty()) break;
    const std::size_t end = std::min(names.find(kBar), names.size());
    counter = {blob_field(names.substr(readers::kBlobPrefix.size(), end - readers::kBlobPrefix.size())), die};
    names.remove_prefix(std::min(end + kBar.size(), names.size()));
  }
  return counters;
}

// A sleeping card does not show whether it counts.
Reader counted(Context& context, const Residency::Counters& counters) {
  AmdCard& card = card_of(context);
  const bool has_all = context.awake() && Residency(counters).advance(card.blob()).status == ReadStatus::ok;
  if (!has_all) return {};
  return CountingReader(Residency(counters), [&context, &card](Settled<Residency>& settled) {
    const GpuMetricsBlob& blob = card.blob();
    if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
    Residency& residency = settled.current();
    if (context.is_after_gap()) residency.restart();
    return residency.advance(blob);
  });
}

/// 1 while any throttler of the mask is active.
template <Throttlers of>
Reader any_of(AmdCard& card, std::uint64_t mask) {
  return [&card, mask] { return card.throttlers(of).any_of(mask); };
}

Sample energy(AmdCard& card) noexcept {
  const GpuMetricsBlob& blob = card.blob();
  if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
  const std::uint64_t units = blob.raw(kEnergy).value_or(0);
  if (units == 0) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(to_base(static_cast<double>(units), BlobUnit::energy_units));
}

constexpr std::uint64_t kNotPresent = 2;  // kgd_pp_interface.h, xgmi_link_status

bool has_link(Context& context, const BlobElement& wanted) {
  AmdCard& card = card_of(context);
  return card.each_link() && context.awake() && card.has_blob_field(wanted.field, wanted.element - 1);
}

using Parse = std::optional<double> (*)(std::string_view text) noexcept;
Reader bind_parsed(Context& context, const ReadSource& source, Parse parse) {
  const std::optional<int> file = context.text_file(source.name);
  if (!file) return {};
  return probed(context, [&context, file = *file, parse] {
    const files::TextCache::Text text = context.text(file);
    return text.status == ReadStatus::ok ? files::sample_of(parse(text.text)) : Sample::miss(text.status);
  });
}

}  // namespace

Reader power(Context& context, const ReadSource& source) {
  Reader read = files::file(context, source);
  if (!read || card_of(context).chip() != Chip::mi200 || !context.awake()) return read;
  const Sample watts = read();
  return watts.status == ReadStatus::ok && watts.value == 0 ? Reader() : std::move(read);
}

Reader busy(Context& context, const ReadSource& source) {
  const std::optional<int> file = context.number_file(source.name);
  if (!file) return {};
  return probed(context, [&context, file = *file] {
    const Sample sample = context.number(file);
    const bool overshot = sample.value > kFull && sample.value <= kOvershoot;
    return overshot ? Sample{kFull, sample.status} : sample;
  });
}

Reader peak(Context& context, const ReadSource& source) {
  const std::optional<KfdNode>& card = card_of(context).kfd();
  return card ? constant_if(peak_of(*card, static_cast<Peak>(source.argument))) : Reader();
}

Reader part_peak(Context& context, const ReadSource& source) {
  const std::optional<KfdNode>& part = card_of(context).partition_node(context.slice());
  return part ? constant_if(peak_of(*part, static_cast<Peak>(source.argument))) : Reader();
}

Reader part_memory(Context& context, const ReadSource&) {
  const std::optional<KfdNode>& part = card_of(context).partition_node(context.slice());
  const bool is_told = part && part->memory_bytes > 0;
  return is_told ? gpumeter::constant(static_cast<double>(part->memory_bytes)) : Reader();
}

Reader readers::blob(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  const BlobElement wanted = BlobElement::of(source.argument);
  const std::size_t index = wanted.element == 0 ? 0 : wanted.element - 1;
  if (!card.has_blob_field(wanted.field, index)) return {};
  if (wanted.element == 0) return [&card, wanted] { return card.blob().value(wanted.field); };
  return [&card, wanted, index] { return card.blob().value(wanted.field, index); };
}

Reader readers::counter(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  if (!context.awake() || !card.has_blob_field(source.argument)) return {};
  return [&card, field = source.argument] { return card.blob().sum(field); };
}

Reader readers::highest(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  if (!card.has_blob_field(source.argument)) return {};
  return [&card, field = source.argument] { return card.blob().highest(field); };
}

Reader readers::part_highest(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  if (!card.has_blob_field(source.argument)) return {};
  return [&card, field = source.argument, part = context.slice(), parts = card.partition_count()] {
    return card.blob().highest(field, part, parts);
  };
}

Reader readers::either(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  const BlobElement both = BlobElement::of(source.argument);
  if (!card.has_blob_field(both.field) && !card.has_blob_field(both.element)) return {};
  return [&card, both] {
    const Sample first = card.blob().value(both.field);
    return first.status == ReadStatus::unsupported ? card.blob().value(both.element) : first;
  };
}

Reader xgmi_links(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  if (!card.has_blob_field(kLinkStatus)) return {};
  return [&card, states = source.argument] { return card.blob().count_of(kLinkStatus, states); };
}

Reader dram_bandwidth(Context& context, const ReadSource&) {
  AmdCard& card = card_of(context);
  if (!card.has_blob_field(kMemoryActivity) || !card.has_blob_field(kPowerSince1_4)) return {};
  return [&card] { return card.blob().value(kMemoryActivity); };
}

// A chip without an accumulator has 0 here, as has the second die of an MI250. A sleeping card cannot be
// read.
Reader blob_energy(Context& context, const ReadSource&) {
  AmdCard& card = card_of(context);
  if (!context.awake() || !card.blob().holds(kEnergy)) return {};
  const bool is_unit_known = card.has_blob_field(kEnergy) || energy_unit_is_known(card.chip());
  if (!is_unit_known || energy(card).status != ReadStatus::ok) return {};
  return [&card] { return energy(card); };
}

Reader throttle(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  if (card.has_blob_field(kIndependentThrottle))
    return any_of<Throttlers::independent>(card, source.argument);
  const std::uint64_t mask = chip_throttle_mask(card.chip(), source.argument);
  const bool is_known = mask != 0 && card.has_blob_field(kChipThrottle);
  return is_known ? any_of<Throttlers::of_chip>(card, mask) : Reader();
}

Reader residency(Context& context, const ReadSource& source) {
  return counted(context, counters_of(source.name, source.argument));
}

Reader part_busy(Context& context, const ReadSource& source) {
  const GpuMetricsBlob& blob = card_of(context).blob();
  const std::size_t field = counters_of(source.name, 0).front().field;
  std::size_t dies = 0;
  while (blob.of_die(field, dies)) ++dies;
  const std::size_t share = dies / card_of(context).partition_count();
  Residency::Counters counters;
  if (share == 0 || share > counters.size()) return {};
  for (std::size_t i = 0; i < share; ++i) counters[i] = {field, context.slice() * share + i};
  return counted(context, counters);
}

// A link that the board lacks has all-ones instead of a count.
Reader readers::link_counter(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  const BlobElement wanted = BlobElement::of(source.argument);
  if (!has_link(context, wanted)) return {};
  const auto read = [&card, wanted] { return card.blob().value(wanted.field, wanted.element - 1); };
  return read().status == ReadStatus::ok ? Reader(read) : Reader();
}

Reader readers::link_status(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  const BlobElement wanted = BlobElement::of(source.argument);
  if (!has_link(context, wanted)) return {};
  const auto status = card.blob().raw(wanted.field, wanted.element - 1);
  if (!status || *status >= kNotPresent) return {};
  return [&card, wanted] { return card.blob().value(wanted.field, wanted.element - 1); };
}

Reader event_count(Context& context, const ReadSource& source) {
  AmdCard& card = card_of(context);
  if (!card.events()) return {};
  return [events = card.events(), place = source.argument] {
    if (!events->is_reported()) return Sample::miss(ReadStatus::unsupported);
    return Sample::of(static_cast<double>(events->count_of(place)));
  };
}

Reader ras_count(Context& context, const ReadSource& source) {
  return files::bind_count(context, source.name, kRasSeverities[source.argument].key);
}

Reader clock_limit(Context& context, const ReadSource& source) {
  return bind_parsed(context, source, highest_level);
}

Reader clock_level(Context& context, const ReadSource& source) {
  return bind_parsed(context, source, current_level);
}

Reader links(Context& context, const ReadSource& source) {
  return bind_parsed(context, source, sum_of_links);
}

// Lines are "0x000a1b2c : 0x00001000 : R" (kernel 6.12, amdgpu_ras_sysfs_badpages_read), so a capital R is a
// flag. The file has no size limit, but the kernel returns one page of it per read.
Reader bad_pages(Context& context, const ReadSource& source) {
  const std::optional<std::string> path = context.paths().resolve(source.name);
  sysfs::File file(path.value_or(""));
  if (file.status() == ReadStatus::gone) return {};
  return [file = std::move(file)]() mutable {
    if (file.status() != ReadStatus::ok) file.retry();
    std::array<char, 4096> buffer{};
    std::size_t offset = 0;
    std::ptrdiff_t pages = 0;
    for (;;) {
      const sysfs::Bytes bytes = file.read(buffer, offset);
      if (bytes.status != ReadStatus::ok) return Sample::miss(bytes.status);
      if (bytes.size == 0) return Sample::of(static_cast<double>(pages));
      pages += std::count(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(bytes.size), 'R');
      offset += bytes.size;
    }
  };
}

Reader mode(Context& context, const ReadSource& source) {
  const std::optional<int> file = context.text_file(source.name);
  const bool is_refused = file && context.awake() && context.text(*file).status != ReadStatus::ok;
  if (!file || is_refused) return {};
  return [&context, file = *file, word = kModes[source.argument].word] {
    const files::TextCache::Text text = context.text(file);
    return text.status == ReadStatus::ok ? Sample::of(text.text == word ? 1 : 0) : Sample::miss(text.status);
  };
}

}  // namespace gpumeter::amd
