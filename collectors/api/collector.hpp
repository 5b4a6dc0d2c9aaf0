#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/clock.hpp"
#include "base/option_schema.hpp"
#include "base/result.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

class EventLedger;

/// How often a row is read. The config sets the intervals (`sampling`). `once` is the first pass after each
/// attach, for values that do not change while a driver is loaded.
enum class Tier : std::uint8_t { fast, normal, slow, once };
inline constexpr std::array kTiers = {Tier::fast, Tier::normal, Tier::slow, Tier::once};

constexpr std::string_view to_string(Tier tier) noexcept {
  constexpr std::string_view kNames[] = {"fast", "normal", "slow", "once"};
  return kNames[static_cast<std::size_t>(tier)];
}

/// Lets a long pass yield when the lane has more urgent work due. Lane thread.
class YieldCheck {
 public:
  virtual ~YieldCheck() = default;
  virtual bool should_yield() const noexcept = 0;
};

/// One run of the lane over the rows of one tier.
struct Pass {
  Tier tier;
  Nanoseconds now;  ///< CLOCK_MONOTONIC at its start
  /// Time since this tier's last complete pass. Zero for the first pass and after a gap (missed deadline,
  /// suspend, lost device), because there is nothing to integrate over.
  Nanoseconds elapsed;
  const YieldCheck* yield = nullptr;  ///< null: run to the end
};

enum class PassOutcome : std::uint8_t {
  complete,
  partial,      ///< ran to its end, but a reading that feeds a counter failed: no integral has advanced
  unread,       ///< ran to its end, and every read that could succeed failed; no integral has advanced
  interrupted,  ///< yielded; the next call with this tier continues the same pass
  asleep,       ///< complete, but the device sleeps and was not woken: nothing was observed
  gone,         ///< the device is no longer present: rediscover it
};

/// A device as read by one collector. One lane thread owns and calls it. Every call may block in the driver;
/// none throws.
class Device {
 public:
  virtual ~Device() = default;

  /// Opens the device's sources and fixes which series it has. Called before the first pass, and again when
  /// the device returns after a loss, with the current result of discovery. Counters continue from their
  /// previous values.
  virtual Result<Done> attach(const DeviceInfo& info) = 0;

  /// The series, by slot. Valid until the next attach().
  virtual std::span<const SeriesSpec> series() const = 0;

  /// Closes everything that attach() opened, so that the driver can be unloaded. attach() opens it again.
  virtual void release() noexcept = 0;

  /// Reads the rows of `pass.tier` into their slots. Must not allocate, build strings or log.
  virtual PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept = 0;

  /// True if a source that could not be read during attach() can be read now, so that another attach() finds
  /// more series. Called after a fast pass with that pass's `now`; may read a few files.
  virtual bool has_more(Nanoseconds) noexcept { return false; }

  /// The slots of the counters that gpumeter counts itself, in contrast to those that the hardware or the
  /// driver keeps. Valid until the next attach().
  virtual std::span<const std::size_t> own_counters() const { return {}; }

  /// Continues one of these counters from the total of an earlier process. Called after attach(), before its
  /// first pass, and at most once for each series.
  virtual void resume(std::size_t, double) noexcept {}
};

/// Values that the service may not read as it is installed, and the example that permits them.
struct DeniedValues {
  std::string what;     ///< "busy_time"
  std::string drop_in;  ///< in /usr/share/doc/gpumeter/examples/systemd
};

/// The result of a discovery. `notes` are logged once each: why a device cannot be read, and how to fix it.
struct Discovery {
  std::vector<DeviceInfo> devices;
  std::vector<std::string> notes;
  std::vector<DeniedValues> denied = {};
  /// Some device did not answer: discovery runs again soon.
  bool is_incomplete = false;
};

/// All devices of one kind of driver. discover() runs on the collector's discovery thread at the start, every
/// 60 s, after a loss and on hot plug; it may block. device() is cheap and does not touch hardware.
class Collector {
 public:
  virtual ~Collector() = default;

  /// An Error means that the collector as a whole does not work (gpumeter_collector_up 0). A machine
  /// without such a device is no error.
  virtual Result<Discovery> discover() = 0;

  virtual std::unique_ptr<Device> device(const DeviceInfo& info) = 0;
};

/// One row of a collector's table, for `--print-metrics` and docs/metrics.md.
struct RowDoc {
  const MetricDescriptor* family;
  LabelSet labels;
  std::string_view source;  ///< file, call or field it comes from
  Tier tier;
  // Series derived from the row: an integrated counter and the extremes of the last minute; null if absent.
  const MetricDescriptor* counter;
  const MetricDescriptor* max;
  const MetricDescriptor* min;
};

/// The environment of a collector. Roots and clock are parameters, so that tests can replace them.
struct CollectorContext {
  std::string sysfs_root;   ///< "/sys"
  std::string procfs_root;  ///< "/proc"
  const Clock* clock;
  std::map<std::string, std::vector<std::string>>
      options;                                      ///< its own config keys, checked against its schema
  std::shared_ptr<HangingCalls> hanging = nullptr;  ///< outlives collectors; null: each collector has its own
  std::shared_ptr<DrmUsers> drm_users = nullptr;    ///< outlives collectors; null: clients are not scanned
  std::shared_ptr<EventLedger> events = nullptr;    ///< what drivers report goes there; may be null
};

/// A key of `collectors.<name>` in addition to `enabled`.
using CollectorOption = OptionSchema;

/// An error in a collector's key that its kind does not rule out.
struct OptionProblem {
  std::string key;          ///< "events"
  std::size_t element = 0;  ///< index in a list; 0 for a plain value
  std::string text;         ///< the valid values
};

/// The config's value for a key, otherwise the key's default.
inline std::string option(const CollectorContext& context, const CollectorOption& schema) {
  const auto given = context.options.find(std::string(schema.name));
  const bool is_given = given != context.options.end() && !given->second.empty();
  return is_given ? given->second.front() : std::string(schema.fallback);
}

/// A plugin: one row of the table in collectors/builtin.cpp. One word is its folder, config key, flag and
/// label value.
struct CollectorEntry {
  std::string_view name;
  bool enabled_by_default;
  int max_parallel;  ///< lanes inside its driver at the same time; 0: no limit
  std::span<const CollectorOption> options;
  std::span<const RowDoc> (*metrics)();
  /// Checks its own keys beyond their kinds, without side effects. nullopt: they are valid.
  std::optional<OptionProblem> (*check)(const CollectorContext&);
  Result<std::unique_ptr<Collector>> (*open)(const CollectorContext&);
  /// Above 0: its devices are simulated, this many at most. --simulate and --simulate-event set its keys
  /// `devices` and `events`, and gpumeter_simulated is 1 while it is enabled.
  unsigned most_made_up = 0;
};

}  // namespace gpumeter
