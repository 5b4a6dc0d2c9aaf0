#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// The host's memory in bytes.
struct HostMemory {
  double total = 0;
  double available = 0;  ///< what new programs can allocate without swapping, by the kernel's estimate
};

/// Parses the text of /proc/meminfo, or its beginning: the lines MemTotal and MemAvailable (Linux 3.14,
/// Documentation/filesystems/proc.rst), in kB of 1024 bytes. nullopt if one is missing or no number, or if
/// more is available than there is. Any bytes.
std::optional<HostMemory> parse_meminfo(std::string_view text) noexcept;

/// /proc/meminfo, kept open. One thread.
class HostMemoryFile {
 public:
  HostMemoryFile() = default;
  /// `procfs`: "/proc", or a copy of it in tests.
  explicit HostMemoryFile(const std::string& procfs) : file_(procfs + "/meminfo") {}

  /// A pass begins: discards the reading of the last one.
  void begin_pass() noexcept { is_fresh_ = false; }

  struct Reading {
    HostMemory memory;
    ReadStatus status = ReadStatus::unsupported;
  };
  /// Reads the file, once a pass, so that used and free sum to the size; allocates nothing. `failed` if its
  /// text is not as described above.
  const Reading& read() noexcept;

 private:
  Reading read_now() const noexcept;

  sysfs::File file_;
  Reading reading_;
  bool is_fresh_ = false;
};

}  // namespace gpumeter

namespace gpumeter::pci {

/// The kind of path between two GPUs, the shortest first, as nvidia-smi's matrix has it (nvml.h,
/// nvmlGpuTopologyLevel_t).
enum class Path : std::uint8_t {
  link,  ///< NVLink or xGMI
  pix,   ///< one switch
  pxb,   ///< several switches
  phb,   ///< one host bridge
  node,  ///< several host bridges of one NUMA node
  sys,   ///< several NUMA nodes
};
inline constexpr EnumNames<Path, 6> kPathNames = {{{Path::link, "link"},
                                                   {Path::pix, "pix"},
                                                   {Path::pxb, "pxb"},
                                                   {Path::phb, "phb"},
                                                   {Path::node, "node"},
                                                   {Path::sys, "sys"}}};
constexpr std::string_view to_string(Path path) noexcept { return kPathNames.of(path); }

/// Marks an entry of DeviceInfo::linked_to that is a switch of links (NVSwitch), followed by its PCI address
/// or by nothing if the machine's bus does not have it. GPUs with the same entry reach each other through it.
inline constexpr std::string_view kSwitchPrefix = "switch:";

/// Where a card is attached.
struct Place {
  std::string port;              ///< folder of the card's topmost own port (upstream_port), links resolved
  std::optional<int> numa_node;  ///< nullopt: the machine has only one, or the firmware does not report it

  bool operator==(const Place&) const = default;
};

/// Reads the place of the function at `address` ("0000:0c:00.0"); nullopt if the bus has none. Reads files of
/// the PCI core only, which wake no device.
std::optional<Place> place_of(const std::string& sysfs_root, const std::string& address);

/// The path over PCI Express, never `link`. The folders of two ports share the bridges and the host bridge
/// above both, because each folder is within that of the bridge above it.
Path path_between(const Place& one, const Place& other);

}  // namespace gpumeter::pci
