#include "collectors/amd/kfd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

// The topology.

/// The number in one "key value" line of a properties file. 0 if there is no such line; the driver also
/// writes 0 for an unknown value.
std::uint64_t property(std::string_view properties, std::string_view key) {
  while (!properties.empty()) {
    std::string_view line = take_until(properties, '\n');
    if (take_until(line, ' ') == key) return parse_number<std::uint64_t>(trimmed(line)).value_or(0);
  }
  return 0;
}

int small_property(std::string_view properties, std::string_view key) {
  constexpr std::uint64_t kMost = 1'000'000'000;  // above every real value: a larger one is invalid
  const std::uint64_t value = property(properties, key);
  return value <= kMost ? static_cast<int>(value) : 0;
}

/// location_id is bus << 8 | device << 3 | function.
pci::Address address_of(std::string_view properties) {
  const std::uint64_t location = property(properties, "location_id");
  return {static_cast<std::uint32_t>(property(properties, "domain")),
          static_cast<std::uint8_t>(location >> 8 & 0xff), static_cast<std::uint8_t>(location >> 3 & 0x1f),
          static_cast<std::uint8_t>(location & 0x7)};
}

/// A divided card's nodes have their number in the highest bits of location_id. Up to kernel 6.8 it is in the
/// function, which is 0 in the address of such a card (kernel 6.12, kfd_topology.c, kfd_topology_add_device).
unsigned partition_of(std::string_view properties) {
  const std::uint64_t location = property(properties, "location_id");
  return static_cast<unsigned>((location >> 28 & 0xf) | (location & 0x7));
}

/// nullopt: a node of processors, which has no SIMDs.
std::optional<KfdNode> read_node(const std::string& folder) {
  const std::string properties = sysfs::read_text(folder + "/properties");
  const int simds = small_property(properties, "simd_count");
  const int simds_per_unit = small_property(properties, "simd_per_cu");
  if (simds == 0 || simds_per_unit == 0) return std::nullopt;
  const std::string memory = sysfs::read_text(folder + "/mem_banks/0/properties");
  KfdNode node;
  node.gpu_id = static_cast<std::uint32_t>(sysfs::read_integer(folder + "/gpu_id").value_or(0));
  node.address = address_of(properties);
  node.unique_id = property(properties, "unique_id");
  node.device = static_cast<std::uint16_t>(small_property(properties, "device_id"));
  node.partition = partition_of(properties);
  node.render_minor = small_property(properties, "drm_render_minor");
  node.target = small_property(properties, "gfx_target_version");
  node.compute_units = simds / simds_per_unit;
  node.clock_megahertz = small_property(properties, "max_engine_clk_fcompute");
  node.memory_bytes = property(memory, "size_in_bytes");
  node.memory_bits = small_property(memory, "width");
  node.memory_clock_megahertz = small_property(memory, "mem_clk_max");
  return node;
}

// The render node is a weaker key. Its numbers in the topology and on the machine differ if one of them is
// seen from within a container. The chip must therefore match too.
const KfdNode* find(const std::vector<KfdNode>& nodes, const KfdKey& key) {
  const auto here = [&](const KfdNode& node) { return node.address == key.address; };
  const auto rendered = [&](const KfdNode& node) {
    return key.render_minor == node.render_minor && node.device == key.device;
  };
  auto found = std::find_if(nodes.begin(), nodes.end(), here);
  if (found == nodes.end()) found = std::find_if(nodes.begin(), nodes.end(), rendered);
  return found == nodes.end() ? nullptr : &*found;
}

const KfdNode& first_of_card(const std::vector<KfdNode>& nodes, const KfdNode& node) {
  const auto is_same = [&](const KfdNode& other) { return other.unique_id == node.unique_id; };
  return node.unique_id == 0 ? node : *std::find_if(nodes.begin(), nodes.end(), is_same);
}

/// The GPU node to which an xGMI link leads.
std::optional<const KfdNode*> linked_node(std::string_view link, const std::vector<KfdNode>& nodes) {
  constexpr int kXgmi = 11;  // kernel 6.12, kfd_crat.h, CRAT_IOLINK_TYPE_XGMI
  if (small_property(link, "type") != kXgmi) return std::nullopt;
  const int to = small_property(link, "node_to");
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const KfdNode& node) { return node.number == to; });
  if (found == nodes.end()) return std::nullopt;
  return &*found;
}

// Peak rates.

constexpr double kMegahertz = 1e6;

/// Floating-point operations per compute unit and clock, 0 if no rate is published. Each row is checked
/// against a peak in one of AMD's data sheets, in Tflop/s: units x rate x clock.
struct ComputeRate {
  int first, last;  // gfx_target_version
  double fp32, fp16, bf16;
};
constexpr ComputeRate kComputeRates[] = {
    {90000, 90006, 128, 0, 0},     // Radeon VII: 60 x 128 x 1.8 GHz = 13.8 fp32
    {90008, 90008, 128, 1024, 0},  // MI100: 120 x 128 x 1.502 = 23.1 fp32, x 1024 = 184.6 fp16
    {90010, 90010, 256, 1024,
     1024},  // MI210: 104 x 256 x 1.7 = 45.3 fp32 (packed), x 1024 = 181.0 fp16, bf16
    {90402, 90402, 256, 2048, 2048},  // MI300X: 304 x 256 x 2.1 = 163.4 fp32, x 2048 = 1307.4 fp16, bf16
    {100300, 100399, 128, 0, 0},      // RX 6900 XT: 80 x 128 x 2.25 = 23.0 fp32
    {110000, 110599, 256, 512,
     0},  // RX 7900 XTX: 96 x 256 x 2.5 = 61.4 fp32 (dual issue), x 512 = 122.9 fp16
};

/// Transfers per clock of the memory on all cards of an architecture. Each row is checked against the
/// bandwidth of a data sheet: bus width / 8 x clock x rate. APUs are omitted: the driver does not report
/// their type of memory.
struct MemoryRate {
  int first, last;  // gfx_target_version
  double transfers;
};
constexpr MemoryRate kMemoryRates[] = {
    {90000, 90000, 2},     // HBM2. RX Vega 64: 2048 bit x 945 MHz x 2 = 484 GB/s
    {90004, 90004, 2},     // HBM2, as above
    {90006, 90006, 2},     // HBM2. Radeon VII: 4096 bit x 1000 MHz x 2 = 1024 GB/s
    {90008, 90008, 2},     // HBM2. MI100: 4096 bit x 1200 MHz x 2 = 1229 GB/s
    {90010, 90010, 2},     // HBM2e. MI210: 4096 bit x 1600 MHz x 2 = 1638 GB/s
    {90402, 90402, 4},     // HBM3. MI300X: 8192 bit x 1300 MHz x 4 = 5325 GB/s
    {100100, 100100, 16},  // GDDR6. RX 5700 XT: 256 bit x 875 MHz x 16 = 448 GB/s
    {100102, 100102, 16},  // GDDR6, as above
    {100300, 100302, 16},  // GDDR6. RX 6900 XT: 256 bit x 1000 MHz x 16 = 512 GB/s
    {100304, 100304, 16},  // GDDR6, as above
    {110000, 110002, 16},  // GDDR6. RX 7900 XTX: 384 bit x 1250 MHz x 16 = 960 GB/s
    {120000, 120001, 16},  // GDDR6. RX 9070 XT: 256 bit x 1258 MHz x 16 = 644 GB/s
};

template <class Rate, std::size_t N>
const Rate* rate_of(const Rate (&rates)[N], int target) noexcept {
  const auto covers = [target](const Rate& rate) { return rate.first <= target && target <= rate.last; };
  const Rate* const found = std::find_if(std::begin(rates), std::end(rates), covers);
  return found == std::end(rates) ? nullptr : found;
}

std::optional<double> known(double value) noexcept { return value > 0 ? std::optional(value) : std::nullopt; }

std::optional<double> memory_bandwidth(const KfdNode& card) noexcept {
  const MemoryRate* const rate = rate_of(kMemoryRates, card.target);
  if (rate == nullptr) return std::nullopt;
  return known(card.memory_bits / 8.0 * rate->transfers * card.memory_clock_megahertz * kMegahertz);
}

double operations_per_clock(const ComputeRate& rate, Peak peak) noexcept {
  switch (peak) {
    case Peak::fp32:
      return rate.fp32;
    case Peak::fp16:
      return rate.fp16;
    case Peak::bf16:
      return rate.bf16;
    case Peak::memory:
      break;
  }
  return 0;
}

// Processes.

constexpr std::string_view kMemoryPrefix = "vram_";
constexpr std::string_view kStatsPrefix = "stats_";

using Gpus = std::span<const std::uint32_t>;

/// The N of "<prefix>N" if `gpus` contains it.
std::optional<std::uint32_t> gpu_of(std::string_view name, std::string_view prefix, Gpus gpus) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::optional<std::uint32_t> gpu = parse_number<std::uint32_t>(name.substr(prefix.size()));
  const bool is_asked = gpus.empty() || (gpu && std::find(gpus.begin(), gpus.end(), *gpu) != gpus.end());
  return is_asked ? gpu : std::nullopt;
}

void read_memory(const std::string& folder, const std::string& name, Gpus gpus,
                 std::map<std::uint32_t, KfdUse>& uses) {
  const std::optional<std::uint32_t> gpu = gpu_of(name, kMemoryPrefix, gpus);
  if (!gpu) return;
  const auto bytes = parse_number<std::uint64_t>(sysfs::read_text(folder + "/" + name));
  if (bytes) uses[*gpu].vram_bytes = *bytes;
}

void read_occupation(const std::string& folder, const std::string& name, Gpus gpus,
                     std::map<std::uint32_t, KfdUse>& uses) {
  const std::optional<std::uint32_t> gpu = gpu_of(name, kStatsPrefix, gpus);
  if (!gpu) return;
  const auto units = parse_number<int>(sysfs::read_text(folder + "/" + name + "/cu_occupancy"));
  if (units && *units >= 0) uses[*gpu].compute_units = *units;
}

std::vector<KfdUse> uses_of(const std::string& folder, KfdDetail detail, Gpus gpus) {
  std::map<std::uint32_t, KfdUse> uses;
  for (const std::string& name : sysfs::list(folder)) {
    read_memory(folder, name, gpus, uses);
    if (detail == KfdDetail::occupation) read_occupation(folder, name, gpus, uses);
  }
  std::vector<KfdUse> result;
  for (auto& [gpu, use] : uses) {
    use.gpu = gpu;
    result.push_back(use);
  }
  return result;
}

// The driver creates a file of each process for every GPU of the machine, used or not (kernel 6.12,
// kfd_process.c, kfd_procfs_add_sysfs_files).
bool is_in_use(const KfdUse& use) {
  return use.vram_bytes.value_or(0) > 0 || use.compute_units.value_or(0) > 0;
}

/// True if the file holds a number other than 0.
bool is_positive(int folder, const char* name) noexcept {
  const Descriptor file(::openat(folder, name, O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  std::array<char, 32> buffer{};
  const ssize_t size = ::read(file.number(), buffer.data(), buffer.size());
  const auto value =
      sysfs::parse_integer({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
  return value && *value > 0;
}

// Partitions.

// MI300X and MI350X in CPX mode have eight; gpu_metrics has room for eight as well.
constexpr std::size_t kMostPartitions = 8;

// The driver writes "UNKNOWN" while the mode is not known.
std::string mode(const std::string& file) {
  std::string word = sysfs::read_text(file);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return word == "unknown" ? "" : word;
}

std::vector<Label> facts_of(const PartitionModes& modes, const std::optional<KfdNode>& node) {
  std::vector<Label> facts = {{"profile", modes.compute}};
  if (!modes.memory.empty()) facts.push_back({"memory_profile", modes.memory});
  if (!node) return facts;
  facts.push_back({"compute_units", std::to_string(node->compute_units)});
  if (node->render_minor != 0) facts.push_back({"minor", std::to_string(node->render_minor)});
  return facts;
}

}  // namespace

std::vector<KfdNode> kfd_nodes(const std::string& sysfs_root) {
  const std::string folder = sysfs_root + "/class/kfd/kfd/topology/nodes";
  std::vector<KfdNode> nodes;
  for (const std::string& name : sysfs::list(folder)) {
    std::optional<KfdNode> node = read_node(folder + "/" + name);
    if (!node) continue;
    node->number = parse_number<int>(name).value_or(0);
    nodes.push_back(*node);
  }
  return nodes;
}

// All partitions of a card have its links, so only those of its first node are read.
std::vector<KfdLink> kfd_links(const std::string& sysfs_root, const std::vector<KfdNode>& nodes) {
  std::vector<KfdLink> links;
  for (const KfdNode& node : nodes) {
    if (&first_of_card(nodes, node) != &node) continue;
    const std::string folder =
        sysfs_root + "/class/kfd/kfd/topology/nodes/" + std::to_string(node.number) + "/io_links";
    for (const std::string& name : sysfs::list(folder)) {
      const auto other = linked_node(sysfs::read_text(folder + "/" + name + "/properties"), nodes);
      if (!other) continue;
      const KfdLink link{node.address, first_of_card(nodes, **other).address};
      const bool is_new = std::find(links.begin(), links.end(), link) == links.end();
      if (link.from != link.to && is_new) links.push_back(link);
    }
  }
  return links;
}

std::vector<KfdNode> kfd_nodes_of(const std::vector<KfdNode>& nodes, const KfdKey& key) {
  const KfdNode* const found = find(nodes, key);
  if (found == nullptr) return {};
  std::vector<KfdNode> card = {*found};
  for (const KfdNode& node : nodes) {
    if (&node != found && node.unique_id != 0 && node.unique_id == found->unique_id) card.push_back(node);
  }
  return card;
}

std::optional<KfdNode> kfd_whole(const std::vector<KfdNode>& nodes_of_card) {
  if (nodes_of_card.empty()) return std::nullopt;
  KfdNode card = nodes_of_card.front();
  for (std::size_t i = 1; i < nodes_of_card.size(); ++i) {
    card.compute_units += nodes_of_card[i].compute_units;
    card.memory_bytes += nodes_of_card[i].memory_bytes;
  }
  return card;
}

std::string architecture_name(int target) {
  if (target <= 0) return "";
  std::array<char, 32> text{};  // the stepping is a hexadecimal digit: 90010 is gfx90a
  std::snprintf(text.data(), text.size(), "gfx%d%d%x", target / 10000, target / 100 % 100,
                static_cast<unsigned>(target % 100));
  return text.data();
}

std::optional<double> peak_of(const KfdNode& card, Peak peak) noexcept {
  if (peak == Peak::memory) return memory_bandwidth(card);
  const ComputeRate* const rate = rate_of(kComputeRates, card.target);
  if (rate == nullptr) return std::nullopt;
  return known(card.compute_units * operations_per_clock(*rate, peak) * card.clock_megahertz * kMegahertz);
}

std::map<int, std::vector<KfdUse>> kfd_processes(const std::string& sysfs_root, KfdDetail detail, Gpus gpus) {
  const std::string folder = sysfs_root + "/class/kfd/kfd/proc";
  std::map<int, std::vector<KfdUse>> processes;
  for (const std::string& name : sysfs::list(folder)) {
    const std::optional<int> pid = parse_number<int>(name);
    if (!pid || *pid <= 0) continue;
    std::vector<KfdUse> uses = uses_of(folder + "/" + name, detail, gpus);
    if (!uses.empty()) processes.emplace(*pid, std::move(uses));
  }
  return processes;
}

void CardProcesses::open(std::string sysfs_root, const std::vector<KfdNode>& nodes) {
  sysfs_root_ = std::move(sysfs_root);
  gpu_ids_.clear();
  for (const KfdNode& node : nodes) gpu_ids_.push_back(node.gpu_id);
  const std::optional<KfdNode> card = kfd_whole(nodes);
  compute_units_ = card ? card->compute_units : 0;
  may_ask_hardware_ = false;
}

ReadStatus CardProcesses::read(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  try {
    return list(pass, out);
  } catch (const std::exception&) {  // out of memory
    out.clear();
    return ReadStatus::failed;
  }
}

ReadStatus CardProcesses::list(const Pass& pass, std::vector<DeviceProcess>& out) const {
  std::error_code error;
  const std::string folder = sysfs_root_ + "/class/kfd/kfd/proc";
  if (gpu_ids_.empty() || !std::filesystem::is_directory(folder, error)) return ReadStatus::unsupported;
  const KfdDetail detail = may_ask_hardware_ ? KfdDetail::occupation : KfdDetail::memory;
  for (const auto& [pid, uses] : kfd_processes(sysfs_root_, detail, gpu_ids_)) {
    if (std::any_of(uses.begin(), uses.end(), is_in_use)) out.push_back(describe(pid, uses, pass.elapsed));
  }
  return ReadStatus::ok;
}

DeviceProcess CardProcesses::describe(int pid, const std::vector<KfdUse>& uses, Nanoseconds elapsed) const {
  DeviceProcess process{pid, std::nullopt, std::nullopt};
  std::optional<int> occupied;
  for (const KfdUse& use : uses) {
    if (use.vram_bytes)
      process.memory_bytes = process.memory_bytes.value_or(0) + static_cast<double>(*use.vram_bytes);
    if (use.compute_units) occupied = occupied.value_or(0) + *use.compute_units;
  }
  if (occupied && compute_units_ > 0)
    process.busy_seconds =
        std::min(1.0, static_cast<double>(*occupied) / compute_units_) * to_seconds(elapsed);
  return process;
}

ComputeUsers::ComputeUsers(const std::string& sysfs_root, std::vector<std::uint32_t> gpu_ids)
    : gpu_ids_(std::move(gpu_ids)) {
  if (!gpu_ids_.empty()) processes_.reset(::opendir((sysfs_root + "/class/kfd/kfd/proc").c_str()));
}

bool ComputeUsers::any() const noexcept {
  if (!processes_) return false;
  ::rewinddir(processes_.get());
  while (const dirent* const entry =
             ::readdir(processes_.get())) {  // NOLINT(concurrency-mt-unsafe): ours alone
    if (entry->d_name[0] != '.' && holds_memory(entry->d_name)) return true;
  }
  return false;
}

bool ComputeUsers::holds_memory(const char* pid) const noexcept {
  const auto holds = [&](std::uint32_t gpu) {
    std::array<char, 64> name{};
    const int length = std::snprintf(name.data(), name.size(), "%.40s/vram_%u", pid, gpu);
    return length > 0 && is_positive(::dirfd(processes_.get()), name.data());
  };
  return std::any_of(gpu_ids_.begin(), gpu_ids_.end(), holds);
}

PartitionModes partition_modes(const std::string& card_folder) {
  return {mode(card_folder + "/current_compute_partition"), mode(card_folder + "/current_memory_partition")};
}

std::string to_string(const PartitionModes& modes) {
  return modes.compute + (modes.compute.empty() || modes.memory.empty() ? "" : "/") + modes.memory;
}

std::vector<AmdPartition> partitions_of(const PartitionModes& modes,
                                        const std::vector<KfdNode>& nodes_of_card, std::size_t reported) {
  if (modes.compute.empty() || modes.compute == "spx") return {};
  std::size_t count = reported;
  for (const KfdNode& node : nodes_of_card) count = std::max<std::size_t>(count, node.partition + 1U);
  std::vector<AmdPartition> parts(count <= kMostPartitions ? count : 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto is_it = [&](const KfdNode& node) { return node.partition == i; };
    const auto node = std::find_if(nodes_of_card.begin(), nodes_of_card.end(), is_it);
    if (node != nodes_of_card.end()) parts[i].node = *node;
    parts[i].partition = {modes.compute + ":" + std::to_string(i), facts_of(modes, parts[i].node)};
  }
  return parts;
}

}  // namespace gpumeter::amd
