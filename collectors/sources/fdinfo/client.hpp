#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/drm_use.hpp"

/// The text of /proc/PID/fdinfo/FD of a DRM device, by the kernel's Documentation/gpu/drm-usage-stats.rst,
/// and its meaning: the class of each engine and the owner of each memory region. Reads no file. Any thread.
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

/// A driver's name for one kind of engine.
struct EngineName {
  std::string_view driver;
  std::string_view name;
  EngineClass engine;
};

/// All engines of kernel 7.2 with a class. Engines without one are omitted: xe's `other` (the security
/// controller), v3d's `cache_clean` and `cpu`. amdgpu's `enc` also decodes from VCN 4 on (Radeon RX 7000),
/// where one queue does both.
inline constexpr EngineName kEngineNames[] = {
    {"amdgpu", "gfx", EngineClass::graphics},  // amdgpu_fdinfo.c, amdgpu_ip_name
    {"amdgpu", "compute", EngineClass::compute},
    {"amdgpu", "dma", EngineClass::copy},
    {"amdgpu", "dec", EngineClass::decode},
    {"amdgpu", "enc", EngineClass::encode},
    {"amdgpu", "enc_1", EngineClass::encode},
    {"amdgpu", "jpeg", EngineClass::jpeg},
    {"amdgpu", "vpe", EngineClass::video_enhance},
    {"i915", "render", EngineClass::graphics},  // i915_drm_client.c, uabi_class_names
    {"i915", "copy", EngineClass::copy},
    {"i915", "video", EngineClass::video},
    {"i915", "video-enhance", EngineClass::video_enhance},
    {"i915", "compute", EngineClass::compute},
    {"xe", "rcs", EngineClass::graphics},  // xe_hw_engine.c, xe_hw_engine_class_to_str
    {"xe", "bcs", EngineClass::copy},
    {"xe", "vcs", EngineClass::video},
    {"xe", "vecs", EngineClass::video_enhance},
    {"xe", "ccs", EngineClass::compute},
    {"msm", "gpu", EngineClass::graphics},            // msm_gpu.c
    {"panfrost", "fragment", EngineClass::graphics},  // panfrost_drv.c, engine_names
    {"panfrost", "vertex-tiler", EngineClass::graphics},
    {"panthor", "panthor", EngineClass::graphics},  // panthor_drv.c
    {"v3d", "bin", EngineClass::graphics},          // v3d_drv.h, v3d_queue_to_string
    {"v3d", "render", EngineClass::graphics},
    {"v3d", "tfu", EngineClass::copy},
    {"v3d", "csd", EngineClass::compute},
    {"amdxdna_accel_driver", "npu-amdxdna", EngineClass::compute},  // outside the kernel's tree
};
inline constexpr std::size_t kEngineNameCount = std::size(kEngineNames);

/// A client's count of one engine. Either `busy_ns`, or `cycles` of the clock `total_cycles`.
struct EngineCount {
  std::size_t name = 0;  ///< place in kEngineNames
  bool in_cycles = false;
  std::uint64_t count = 0;         ///< nanoseconds or cycles, summed over the engines of the name
  std::uint64_t total_cycles = 0;  ///< of the clock, if `in_cycles`
  double capacity = 1;             ///< number of engines of the name
};

/// Memory of a client, in bytes.
struct ClientMemory {
  std::optional<double> device;
  std::optional<double> system;
  double shared_device = 0;
  double shared_system = 0;
};

/// A client of a DRM device at one moment.
struct Client {
  std::string device;               ///< the PCI address, or the name of the platform device
  std::optional<std::uint64_t> id;  ///< unique on the device
  int fd = 0;                       ///< one of the process's descriptors that are this client
  std::vector<EngineCount> engines;
  ClientMemory memory;
};

/// The counts of the engines in kEngineNames. Engines with times and cycles are counted by their times.
std::vector<EngineCount> engines_of(const Text& text);

/// Regions vram*, local* and stolen-local* are the device's own memory; gtt, system*, memory, cpu and
/// stolen-system* are the host's. The others are no memory of the client. A region counts by its resident
/// size; by the old alias without one; and by its total if the driver has no resident sizes at all (v3d,
/// amdxdna). panthor-resident-memory is memory of the driver's own for the client.
ClientMemory memory_of(const Text& text);

}  // namespace gpumeter::fdinfo
