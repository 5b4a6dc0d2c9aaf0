#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bounded_calls.hpp"

namespace gpumeter::pci {

/// The address of a function on the bus. Addresses sort in the order of a bus walk, which is the order of GPU
/// indices.
struct Address {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;

  auto operator<=>(const Address&) const = default;
};

/// "0000:0c:00.0", also in capitals and with the longer domains of hosts behind a bridge ("10000:01:00.0").
std::optional<Address> parse_address(std::string_view text) noexcept;

/// Formats in lower case, with at least four digits of domain.
std::string to_string(const Address& address);

/// A function as the bus describes it; reading the description does not wake the device.
struct Function {
  Address address;
  std::string path;  ///< its folder, with all links resolved, so that its parents are the bridges above
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;  ///< base class, sub-class, interface: 0x030000 is a VGA controller
  std::optional<std::uint8_t> revision;
  std::string driver;  ///< empty: none is bound
};

inline constexpr std::uint16_t kVendorNvidia = 0x10de;
inline constexpr std::uint16_t kVendorAmd = 0x1002;  // ATI's ID, which GPUs kept; AMD's processors have
                                                     // 0x1022

/// nullopt if the folder is not a PCI function's.
std::optional<Function> read_function(const std::string& folder);

/// The NUMA node that the function is attached to; nullopt if the machine has only one or the firmware does
/// not report it.
std::optional<int> numa_node(const Function& function);

/// "nvidia", "amd", "intel" or "other".
std::string_view vendor_word(std::uint16_t vendor) noexcept;

/// True for drivers of GPUs. False for no driver, for display drivers without a GPU (server consoles, virtual
/// and firmware framebuffers), and for functions passed to a virtual machine.
bool is_gpu_driver(std::string_view driver) noexcept;

/// The folder whose current_link_* and max_link_* files describe the card's slot. Since Vega, AMD's cards
/// have their own switch in front of the GPU, so the link within the card differs from the slot's. The result
/// is therefore the topmost bridge of the same vendor. Root ports belong to the machine, not to the card.
std::string upstream_port(const Function& function);

/// The CPUs near the function, as a list of ranges ("0-31,64-95"); empty if the kernel does not report them.
std::string local_cpus(const Function& function);

/// True if the port reports the slowest link that exists, one lane of generation 1, as its maximum. Parts
/// that are integrated in a processor report it for want of a link; no card has one. Reads max_link_*, which
/// wakes a sleeping device.
bool has_placeholder_link(const std::string& port);

/// "16.0 GT/s PCIe" -> 4. nullopt if the link is down or its generation unknown.
std::optional<int> link_generation(std::string_view speed) noexcept;

/// Parses power/runtime_status: true while the device sleeps or is about to sleep, so that a read could wake
/// it.
bool is_suspended(std::string_view runtime_status) noexcept;

/// Finds every display controller (class 0x03) and processing accelerator (class 0x12) of the machine, with
/// or without a driver. The scan limits the time of each function of the bus: if the files of one hang, it
/// still finds the others. One thread.
class Scan {
 public:
  /// Reads a function from its folder; may hang.
  using Read = std::function<std::optional<Function>(const std::string& folder)>;

  /// `thread`: name of the threads that read. `hanging`: see BoundedCalls.
  Scan(const std::string& thread, const Clock& clock, Read read = read_function,
       std::shared_ptr<HangingCalls> hanging = nullptr)
      : calls_(thread, kAtMost, clock, std::move(hanging), "pci"), read_(std::move(read)) {}

  struct Found {
    std::vector<Function> adapters;   ///< in order of address
    std::vector<std::string> silent;  ///< addresses of functions that could not be identified
    bool is_whole = true;             ///< false: the kernel refused to create a thread, so some were not read
  };
  /// `sysfs_root`: "/sys".
  Found adapters(const std::string& sysfs_root);

  static constexpr Nanoseconds kAtMost = std::chrono::milliseconds(500);  ///< for one function

 private:
  BoundedCalls calls_;
  const Read read_;
};

}  // namespace gpumeter::pci
