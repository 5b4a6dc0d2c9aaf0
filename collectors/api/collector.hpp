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

#include "base/clock.hpp"
#include "base/hanging_calls.hpp"
#include "base/option_schema.hpp"
#include "base/result.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

/// How often a row is read. Intervals are the config's (`sampling`); `once` is the first pass after each
/// attach, for what does not change while a driver is loaded.
enum class Tier : std::uint8_t { fast, normal, slow, once };
inline constexpr std::array kTiers = {Tier::fast, Tier::normal, Tier::slow, Tier::once};

constexpr std::string_view to_string(Tier tier) noexcept {
  constexpr std::string_view kNames[] = {"fast", "normal", "slow", "once"};
  return kNames[static_cast<std::size_t>(tier)];
}

/// Lets a long pass step aside: the lane says when something more urgent is due. Lane thread.
class YieldCheck {
 public:
  virtual ~YieldCheck() = default;
  virtual bool should_yield() const noexcept = 0;
};

/// One run over the rows of one tier, as the lane sees it.
struct Pass {
  Tier tier;
  Nanoseconds now;  ///< CLOCK_MONOTONIC at its start
  /// Time since this tier's last complete pass; zero for the first pass and after a gap (missed deadline,
  /// suspend, lost device): then there is nothing to integrate over.
  Nanoseconds elapsed;
  const YieldCheck* yield = nullptr;  ///< null: run to the end
};

enum class PassOutcome : std::uint8_t {
  complete,
  partial,      ///< ran to its end, but a reading that a counter is made of failed: no integral has advanced
  unread,       ///< ran to its end, and every read that could succeed failed; no integral has advanced
  interrupted,  ///< stepped aside; the same pass goes on at the next call with this tier
  asleep,       ///< complete, but the device sleeps and was left alone: nothing was observed
  gone,         ///< the device is not there any more: rediscover it
};

/// A device as one collector reads it. Owned and called by one lane thread only; every call may block in
/// the driver, none throws.
class Device {
 public:
  virtual ~Device() = default;

  /// Opens what the device is read from and fixes which series it has. Called before the first pass and
  /// again when the device came back after a loss, with what discovery says of it now. Counters go on
  /// from where they were.
  virtual Result<Done> attach(const DeviceInfo& info) = 0;

  /// The series, by slot. Valid from attach() to the next one.
  virtual std::span<const SeriesSpec> series() const = 0;

  /// Closes all that attach() opened, so that the driver can be unloaded; attach() opens it again.
  virtual void release() noexcept = 0;

  /// Reads the rows of `pass.tier` into their slots. No allocation, no string, no log.
  virtual PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept = 0;

  /// True if a source that could not be read during attach() can be read now, so that another attach() finds
  /// more series. Asked after a fast pass, whose `now` this is; may read a few files.
  virtual bool has_more(Nanoseconds) noexcept { return false; }
};

/// What a discovery found. `notes` are for the log, once each: why a device cannot be read, and what
/// would help.
struct Discovery {
  std::vector<DeviceInfo> devices;
  std::vector<std::string> notes;
  /// Some device did not answer: look again soon.
  bool is_incomplete = false;
};

/// All devices of one kind of driver. discover() runs on the collector's discovery thread: at the start,
/// every 60 s, after a loss and on hot plug; it may block. device() is cheap and does not touch hardware.
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
  // What is derived from it beside: an integrated counter, extremes of the last minute; or null.
  const MetricDescriptor* counter;
  const MetricDescriptor* max;
  const MetricDescriptor* min;
};

/// What a collector gets to work with; roots and time are parameters, so that tests can give their own.
struct CollectorContext {
  std::string sysfs_root;   ///< "/sys"
  std::string procfs_root;  ///< "/proc"
  const Clock* clock;
  std::map<std::string, std::vector<std::string>>
      options;                                      ///< its own config keys, checked against its schema
  std::shared_ptr<HangingCalls> hanging = nullptr;  ///< outlives collectors; null: each has its own
};

/// A key of `collectors.<name>` beside `enabled`.
using CollectorOption = OptionSchema;

/// What is wrong with a key of a collector beyond its kind.
struct OptionProblem {
  std::string key;          ///< "events"
  std::size_t element = 0;  ///< of a list: which one; 0 for a plain value
  std::string text;         ///< what would be right
};

/// What the config gives for a key, else its default.
inline std::string option(const CollectorContext& context, const CollectorOption& schema) {
  const auto given = context.options.find(std::string(schema.name));
  const bool is_given = given != context.options.end() && !given->second.empty();
  return is_given ? given->second.front() : std::string(schema.fallback);
}

/// A plugin: one row of the table in collectors/builtin.cpp. One word names its folder, its config key,
/// its flag and its label value.
struct CollectorEntry {
  std::string_view name;
  bool enabled_by_default;
  int max_parallel;  ///< lanes inside its driver at the same time; 0: no limit
  std::span<const CollectorOption> options;
  std::span<const RowDoc> (*metrics)();
  /// What is wrong with its own keys beyond their kinds; touches nothing. nullopt: they are fine.
  std::optional<OptionProblem> (*check)(const CollectorContext&);
  Result<std::unique_ptr<Collector>> (*open)(const CollectorContext&);
  /// More than 0: its devices are made up, this many at most. --simulate and --simulate-event set its keys
  /// `devices` and `events`, and gpumeter_simulated is 1 while it is enabled.
  unsigned most_made_up = 0;
};

}  // namespace gpumeter
