#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// The text of /proc/PID/fdinfo/FD of a DRM device, by the kernel's Documentation/gpu/drm-usage-stats.rst.
/// Reads no file. Any thread.
namespace gpumeter::fdinfo {

/// The keys of one kind of engine. In drivers with one name for several engines, times and cycles are sums.
struct Engine {
  std::string_view name;                       ///< as the driver spells it: "video-enhance"
  std::optional<std::uint64_t> busy_ns;        ///< drm-engine-*
  std::optional<std::uint64_t> capacity;       ///< drm-engine-capacity-*: engines of this name; absent: 1
  std::optional<std::uint64_t> cycles;         ///< drm-cycles-*
  std::optional<std::uint64_t> total_cycles;   ///< drm-total-cycles-*: the clock by which `cycles` count
  std::optional<std::uint64_t> max_hertz;      ///< drm-maxfreq-*
  std::optional<std::uint64_t> current_hertz;  ///< drm-curfreq-* (panfrost, panthor)

  bool operator==(const Engine&) const = default;
};

/// The keys of one region of memory, in bytes.
struct Region {
  std::string_view name;  ///< "vram0", "gtt", "memory"
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> shared;
  std::optional<std::uint64_t> resident;
  std::optional<std::uint64_t> purgeable;
  std::optional<std::uint64_t> active;
  std::optional<std::uint64_t> alias;  ///< drm-memory-*: an old name of `resident`; amdgpu prints both

  bool operator==(const Region&) const = default;
};

/// A key that is not part of the common grammar: of a driver ("amd-evicted-vram") or of the file system
/// ("pos").
struct OtherKey {
  std::string_view name;
  std::string_view value;  ///< trimmed; may contain a unit, see parse_bytes()

  bool operator==(const OtherKey&) const = default;
};

/// One text. The views refer to it. Absent keys are nullopt or empty.
struct Text {
  std::string_view driver;
  std::string_view device;       ///< drm-pdev: the PCI address; drivers of platform devices have none
  std::string_view client_name;  ///< chosen by the process
  std::optional<std::uint64_t> client_id;
  std::vector<Engine> engines;   ///< in the text's order
  std::vector<Region> regions;   ///< in the text's order
  std::vector<OtherKey> others;  ///< in the text's order
  /// drm-* lines that break the grammar: no colon, no number, an unknown unit, too big, the same key twice,
  /// or cut off at the text's end. Such a line has no value.
  unsigned malformed = 0;
};

Text parse(std::string_view text);

/// A size: a whole number, alone or with B, KiB, MiB or GiB, as drm_fdinfo_print_size() prints it. The unit
/// of a key may change from read to read.
std::optional<std::uint64_t> parse_bytes(std::string_view value) noexcept;

}  // namespace gpumeter::fdinfo
