#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpumeter {

/// A known device as the status page and /api/v1/devices show it; filled by the daemon.
struct DeviceStatus {
  unsigned index = 0;
  std::string uuid;
  std::string vendor;
  std::string model;
  std::string pci_address;
  std::string collector;
  std::string driver;
  bool up = false;
  std::string state;                                          ///< in words: "ok", "lost", "stuck for 12 s"
  std::optional<double> last_success_timestamp_seconds = {};  ///< since 1970; nullopt before the first
};

/// The state of a known device that discovery does not find.
inline constexpr const char* kMissing = "missing";

/// A GPU on the PCI bus that no collector reads.
struct UnreadDevice {
  std::string pci_address;
  std::string vendor;  ///< "nvidia", "amd" or "intel"
  std::string pci_id;  ///< vendor and device: "1002:73bf"
  std::string driver;  ///< that is bound to it; empty: none
  std::string module;  ///< the kernel module that would make it readable
  std::string why;
  std::string remedy;
};

/// The build, for the footer of the status page and gpumeter_build_info.
struct BuildFacts {
  std::string_view version;
  std::string_view revision;
  std::string_view branch;
  std::string_view compiler;
};

/// A collector of this build, for `collect[]`.
struct CollectorState {
  std::string name;
  bool enabled;
};

}  // namespace gpumeter
