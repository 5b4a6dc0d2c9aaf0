#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/files/paths.hpp"
#include "collectors/files/sleep.hpp"
#include "collectors/sources/fdinfo/watch.hpp"
#include "collectors/sources/host.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::files {

/// A device's files, each opened once. Rows refer to them by handle. Lane thread.
template <class Kept>
class OpenFiles {
 public:
  /// Returns the file's handle, the same for the same path; nullopt if the file does not exist. A file that
  /// may not be opened has a handle; each read of it returns the reason.
  std::optional<int> open(const std::string& path) {
    const auto known = std::ranges::find(entries_, path, &Entry::path);
    if (known != entries_.end()) return static_cast<int>(known - entries_.begin());
    sysfs::File file(path);
    if (file.status() == ReadStatus::gone) return std::nullopt;
    entries_.push_back({path, std::move(file), false, {}});
    return static_cast<int>(entries_.size()) - 1;
  }

  /// Called after rows are bound: records the files whose last read returned no value. False if there are
  /// none.
  bool note_unanswered() {
    unanswered_.clear();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].is_unanswered) unanswered_.push_back(static_cast<int>(i));
    }
    return !unanswered_.empty();
  }

 protected:
  struct Entry {
    std::string path;
    sysfs::File file;
    bool is_unanswered = false;  // in its last read
    Kept kept;
  };

  /// Returns the entry. Tries to open its file again if that failed before.
  Entry& entry(int handle) noexcept {
    Entry& found = entries_[static_cast<std::size_t>(handle)];
    if (found.file.status() != ReadStatus::ok) found.file.retry();
    return found;
  }

  std::vector<Entry> entries_;
  std::vector<int> unanswered_;
};

struct KeptInteger {
  bool is_constant = false;
  std::uint64_t read_in = 0;  // the pass in which `sample` was read
  Sample sample = Sample::miss(ReadStatus::unsupported);
};

/// Files of one integer each. A file is read at most once per pass, regardless of the number of rows.
class FileCache : public OpenFiles<KeptInteger> {
 public:
  /// For a value that does not change while its driver is loaded (a size, a limit). The file is read until
  /// one read succeeds; that value is kept.
  std::optional<int> open_constant(const std::string& path);

  /// Discards the readings of the last pass.
  void begin_pass() noexcept { ++pass_; }

  Sample read(int handle) noexcept;

  /// True if a file of note_unanswered() now contains a number. Counts as part of the pass, like read().
  bool answers_now() noexcept;

  /// True if the files were removed while open: the device was removed, or its driver loaded again. Call it
  /// between passes. It costs nothing unless a read returned `gone`.
  bool lost() noexcept;

 private:
  std::uint64_t pass_ = 1;
  std::optional<int> suspect_;  // the last file that was gone
};

struct KeptNothing {};

/// Files of several values each. The text of the last file read is kept during the pass. Adjacent rows that
/// use one file therefore cost one read.
class TextCache : public OpenFiles<KeptNothing> {
 public:
  /// Discards the kept text.
  void begin_pass() noexcept { last_.reset(); }

  struct Text {
    std::string_view text;  ///< trimmed; valid until the next read
    ReadStatus status;
  };
  Text read(int handle) noexcept;

  /// As in FileCache, for a text that is not empty.
  bool answers_now() noexcept;

 private:
  std::optional<int> last_;
  Text text_{{}, ReadStatus::unsupported};
  std::array<char, 4096> buffer_{};  // a page: no text of sysfs is longer
};

// The one engine for devices that files describe: sysfs, hwmon, devfreq, thermal zones, and the clients in
// /proc/PID/fdinfo. It names no device. A collector adds rows and describes its devices by a Kind;
// sources that only its vendor has are Attached.

class Context;
using Row = MetricRow<Context>;
using Source = RowSource<Context>;

/// What all devices of a collector share.
struct Roots {
  std::string sysfs;
  std::string procfs;
  std::shared_ptr<DrmUsers> users = nullptr;  ///< null: clients are not scanned
};

/// How the device's sleep (the kernel's runtime power management) decides when its files are read. Rows whose
/// traits say that they do not wake the device are read always.
enum class Sleep : std::uint8_t {
  ignored,  ///< the driver serves the files from its own memory in any state of the device
  spared,   ///< a device that sleeps is not read
  allowed,  ///< nor is an idle device, so that it falls asleep (SleepPolicy)
};

/// When the device's clients are scanned: reading fdinfo resumes the devices of some drivers.
enum class Scans : std::uint8_t {
  never,        ///< the driver reports no clients
  always,       ///< a scan does not touch the device
  while_awake,  ///< a scan may wake the device
  while_read,   ///< a scan is a use as well: without other reads it would keep the device awake
};

/// A kind of device: its rows, and what it is like. The tables have static storage.
///
/// A label value of "*" stands for the label of each sensor of a name with "{*}": at attach, such a row
/// becomes one row per sensor. With an `argument` in its ReadSource, sensors with a lower number are left
/// out. A kind with such rows lists no processes.
struct Kind {
  std::span<const Row> rows;
  std::span<const Row> slice_rows;  ///< of each slice
  Sleep sleep = Sleep::ignored;
  Scans scans = Scans::never;
  /// The driver of the card in class/drm that the clients open, if it is not the device's own (msm); a
  /// pattern.
  std::string_view client_driver;
  PathRules paths;
  /// Folders that are slices of the device (see matches()), such as "**/neuron_core*".
  std::string_view slices;
  std::string_view slice_kind;  ///< the slices are named "<kind>:<number>"
  /// Info series beyond gpu_info; null: none.
  std::vector<SeriesSpec> (*info_series)(const DeviceInfo&) = nullptr;
};

/// Sources of a device that only its vendor has: a table of the firmware, a PMU, the compute driver. Rows
/// reach them by Context::attached(). Lane thread.
class Attached {
 public:
  virtual ~Attached() = default;

  /// The device's files are open. Called at each attach, also without close() in between.
  virtual void open(Context& context, const DeviceInfo& info, const PowerState& state) = 0;
  virtual void close() noexcept = 0;
  /// A pass begins: discards the readings of the last one.
  virtual void begin_pass(const PowerState& state) noexcept = 0;

  // Signs of use of a device that may fall asleep. Each is asked once in a fast pass.

  /// By sources that do not wake the device.
  virtual bool is_used() noexcept = 0;
  /// By reading the device.
  virtual bool is_busy() noexcept = 0;

  // A device is attached again when its rows may bind otherwise.

  /// True while a source that exists cannot be read.
  virtual bool is_unread() noexcept { return false; }
  /// True if the sources have changed since they were opened.
  virtual bool has_changed() noexcept { return false; }

  /// The processes on the device that are no DRM clients; contract of ListsProcesses.
  virtual ReadStatus processes(const Pass&, std::vector<DeviceProcess>&) noexcept {
    return ReadStatus::unsupported;
  }
  /// The memory of the device in use, in bytes, for the memory of its clients; nullopt: unknown, or it is
  /// the host's.
  virtual std::optional<double> memory_in_use() noexcept { return std::nullopt; }
};

/// One open device: its files, and the values that this pass has read from them. Readers hold references to
/// it. Lane thread.
class Context {
 public:
  Context(Roots roots, const Kind& kind, std::unique_ptr<Attached> attached = nullptr)
      : roots_(std::move(roots)), kind_(kind), attached_(std::move(attached)) {}

  /// Opens the device whose folder is `info.source`. Returns an Error if it does not exist.
  Result<Done> open(const DeviceInfo& info);
  void close() noexcept;
  /// Returns `asleep` also while the device is not read so that it can fall asleep. A screen that is on and
  /// the signs of Attached are signs of use.
  Readiness begin_pass(const Pass& pass) noexcept;
  /// The kernel's power state: false while the device sleeps or is about to, whether this pass reads it or
  /// not. Always true for Sleep::ignored.
  bool awake() const noexcept { return awake_; }

  // For BindsAgain. A device that slept, or whose sources did not answer, binds again when they do.

  void end_binding();
  bool has_more(Nanoseconds now) noexcept;

  // For Divisible and DescribesItself.

  std::span<const Partition> partitions() const noexcept { return slices_; }
  void turn_to(std::size_t slice) noexcept;
  /// The slice whose rows are being bound.
  std::size_t slice() const noexcept { return slice_; }
  std::vector<SeriesSpec> info_series() const;

  // For KnowsProcesses: those of Attached, and the clients in /proc.

  static constexpr Tier kProcessesTier = Tier::normal;
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

  // For Attached::open().

  /// The slices, if no folder shows them.
  void divide(std::vector<Partition> slices) { slices_ = std::move(slices); }
  /// The memory of clients that counts as the device's.
  void count_memory(fdinfo::MemoryKind kind) noexcept { client_lists_ = fdinfo::ProcessLists(kind); }

  // For readers, at attach: handles for names as in Paths; nullopt if the file does not exist.

  Paths& paths() noexcept { return paths_; }
  std::optional<int> number_file(std::string_view name);
  std::optional<int> number_file_at(const std::string& path) { return numbers_.open(path); }
  std::optional<int> constant_file(std::string_view name);  ///< read once, see FileCache
  std::optional<int> text_file(std::string_view name);      ///< for several rows each, see TextCache
  bool has_clients() const noexcept { return static_cast<bool>(clients_); }
  /// The collector's own sources.
  template <class Sources>
  Sources& attached() const noexcept {
    return static_cast<Sources&>(*attached_);
  }

  // For readers, each pass.

  Sample number(int file) noexcept { return numbers_.read(file); }
  TextCache::Text text(int file) noexcept { return texts_.read(file); }
  Nanoseconds now() const noexcept { return now_; }
  /// True if nothing was observed before this pass.
  bool is_after_gap() const noexcept { return is_after_gap_; }
  /// True if this pass reads the device.
  bool is_read() const noexcept { return is_read_; }
  const fdinfo::BusyCounters& clients() const noexcept { return client_counters_; }
  const HostMemoryFile::Reading& host_memory() noexcept { return host_memory_.read(); }

 private:
  void find_slices();
  std::string client_device() const;
  bool may_read(const Pass& pass, const PowerState& state) noexcept;
  bool may_scan(const PowerState& state) const noexcept;

  Roots roots_;
  Kind kind_;
  std::unique_ptr<Attached> attached_;  // null: files only
  DeviceInfo info_;
  Paths paths_;
  FileCache numbers_;
  TextCache texts_;
  RuntimePower power_;
  SleepPolicy sleep_;
  Screens screens_;
  HostMemoryFile host_memory_;
  fdinfo::DeviceWatch clients_;
  fdinfo::BusyCounters client_counters_;
  fdinfo::ProcessLists client_lists_;
  std::vector<Partition> slices_;
  std::vector<std::string> slice_folders_;
  std::size_t slice_ = 0;
  Nanoseconds now_{};
  bool awake_ = true;
  bool is_read_ = true;
  bool is_after_gap_ = true;
  bool is_bound_asleep_ = false;
  bool is_unread_ = false;       // Attached::is_unread() when its rows were bound
  bool is_provisional_ = false;  // some source did not answer
  Nanoseconds look_again_at_{};
};

/// A device of that kind. It lists processes if its clients are scanned or `attached` knows some. A kind with
/// rows for each sensor has no `attached`.
std::unique_ptr<Device> make_device(const Kind& kind, const Roots& roots,
                                    std::unique_ptr<Attached> attached = nullptr);

}  // namespace gpumeter::files
