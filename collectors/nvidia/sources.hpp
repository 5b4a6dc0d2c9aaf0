#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/table/derived.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::nvidia {

class NvmlCaller;

/// The field values that one tier reads from a GPU, in one call per pass: the driver serves fields of the
/// same source together. Lane thread.
class FieldBatch {
 public:
  /// At attach: adds a field and returns its place for read(). `scope`: a link, or the scope of a power
  /// reading.
  int add(unsigned field, unsigned scope);

  /// Drops the values, so that the next read() calls the driver.
  void begin_pass() noexcept { is_fresh_ = false; }

  Sample read(NvmlCaller& caller, int place) noexcept;

 private:
  std::vector<nvml::FieldValue> values_;
  unsigned result_ = 0;  // result of the whole call
  bool is_fresh_ = false;
};

/// The number of a field that was read; its result is of that field alone.
Sample sample_of(const nvml::FieldValue& field) noexcept;

/// One field read by itself, to determine whether the device has it and how wide it is.
struct FieldReading {
  Sample sample;
  nvml::ValueType type;
};
FieldReading read_field(NvmlCaller& caller, unsigned field, unsigned scope) noexcept;

/// A union's value, by the type that the driver returns with it.
double number_of(const nvml::Value& value, nvml::ValueType type) noexcept;

/// One of the driver's sample buffers (nvmlDeviceGetSamples), drained once a pass. One call returns all
/// samples within the second. The driver's timestamps identify the samples; each covers the time since the
/// one before. The buffer runs dry while the GPU idles; a plain reading then takes its place. Lane thread.
class SampleBuffer {
 public:
  explicit SampleBuffer(nvml::SamplingType type) : type_(type) {}
  nvml::SamplingType type() const noexcept { return type_; }

  /// At attach: `ok` if the device has this buffer. Reserves room for the whole buffer.
  ReadStatus open(NvmlCaller& caller);

  /// A pass: its number, its start, and the time observed since the one before (zero: counting begins here).
  struct Moment {
    std::uint64_t pass;
    Nanoseconds now, elapsed;
  };
  bool is_due(const Moment& moment) const noexcept { return moment.pass != moment_.pass; }

  /// Counts the buffer's samples of this pass. Returns false if the buffer is dry; the caller then calls
  /// stand_in().
  bool drain(NvmlCaller& caller, const Moment& moment) noexcept;

  /// Counts a plain reading of the same quantity, in the buffer's unit, for the time without samples.
  void stand_in(Sample plain) noexcept;

  /// Ends the pass. Its counts are kept if the pass was observed, and counted again otherwise.
  void settle(bool is_observed) noexcept;

  /// The integral, in the buffer's unit times seconds, or the reason why there is none.
  Sample total() const noexcept { return said(counted_.total); }
  Sample max() const noexcept { return said(extremes_.max()); }
  Sample min() const noexcept { return said(extremes_.min()); }
  /// The shortest time between two samples of one reading, in seconds; none before a reading of two samples.
  Sample period() const noexcept {
    return period_ > 0 ? said(period_) : Sample::miss(ReadStatus::unsupported);
  }

 private:
  std::span<const nvml::BufferSample> read(NvmlCaller& caller, nvml::ValueType& type) noexcept;
  void measure_period(std::span<const nvml::BufferSample> samples) noexcept;
  void begin_with(std::span<const nvml::BufferSample> samples, nvml::ValueType type) noexcept;
  void begin_before(std::span<const nvml::BufferSample> samples) noexcept;
  bool count(const nvml::BufferSample& sample, nvml::ValueType type) noexcept;
  Sample said(double value) const noexcept {
    return status_ == ReadStatus::ok ? Sample::of(value) : Sample::miss(status_);
  }

  nvml::SamplingType type_;
  std::vector<nvml::BufferSample> room_;
  Moment moment_{};
  struct Counted {
    std::uint64_t until = 0;  // microseconds, the driver's clock; 0: nothing was counted yet
    double total = 0;
    bool restarts =
        false;  // a pass was observed without this buffer: samples older than the next pass do not count
  };
  Counted counted_;
  Counted settled_;  // up to the last observed pass
  RollingExtremes extremes_;
  double period_ = 0;
  ReadStatus status_ = ReadStatus::failed;
};

/// GPU performance metrics (Hopper and newer): the difference between two samples of the hardware's counters.
/// They require neither root nor the profiler's lock. Lane thread.
class GpmSampler {
 public:
  /// Opens a GPU, or a GPU instance of it. Reads nothing if the device lacks these metrics.
  void open(const NvmlCaller& caller, std::optional<unsigned> gpu_instance);
  void close() noexcept;
  GpmSampler() = default;
  ~GpmSampler() { close(); }
  GpmSampler(const GpmSampler&) = delete;
  GpmSampler& operator=(const GpmSampler&) = delete;

  /// The result of open(): `unsupported` if the device lacks these metrics.
  ReadStatus opened() const noexcept { return opened_; }

  /// At attach: returns the place of a metric, which it keeps; nullopt if the device lacks it. May wait a
  /// tenth of a second for the two samples that a comparison requires.
  std::optional<int> add(unsigned metric);

  /// Allows one sample per pass, if the last one is old enough.
  void begin_pass() noexcept { is_fresh_ = false; }

  /// The mean, or the count, of a metric since the previous pass. Metrics are never negative, infinite or
  /// NaN. The driver sometimes returns such values; they are out of range.
  Sample read(int place) noexcept;

  /// Seconds between the two samples behind read(), by the steady clock; the samples end at the same moments.
  double interval() const noexcept { return interval_; }

  /// Seconds since the last call in which multiprocessors had work, averaged over them. nullopt: not known
  /// for all of this time, or "GPM SM" was not added.
  std::optional<double> take_active_seconds() noexcept;

  /// The caller of this class is separate, so it detects a lost GPU independently.
  const NvmlCaller& caller() const noexcept { return caller_; }

 private:
  bool is_open() const noexcept { return samples_[0] != nullptr; }
  ReadStatus prepare();
  unsigned take(nvml::GpmSample sample) noexcept;
  void advance() noexcept;
  unsigned compute() noexcept;
  void count_activity() noexcept;

  NvmlCaller caller_;
  std::optional<unsigned> gpu_instance_;
  std::array<nvml::GpmSample, 2> samples_{};  // older, newer
  std::array<Nanoseconds, 2> taken_{};
  std::unique_ptr<nvml::GpmMetricsGet> metrics_;
  unsigned result_ = nvml::kNotReady;
  ReadStatus opened_ = ReadStatus::unsupported;
  double interval_ = 0;
  std::optional<double> active_seconds_;  // NaN: a sample lacked them
  bool is_fresh_ = false;
};

/// Sources whose first reading at attach failed in a way that may pass (UNKNOWN, TIMEOUT). Their rows are
/// bound nevertheless. If such a source still fails at the next look, it is set aside: the GPU is bound again
/// without it, so that the next row of the series is used. The source is then read at growing intervals. Lane
/// thread.
class UnsettledSources {
 public:
  /// Identifies a row: name and argument of its ReadSource, and the target of the binding. A key without a
  /// name stands for a source that several rows share.
  struct Key {
    const char* name;
    std::uint64_t argument;
    std::size_t target;
    bool operator==(const Key&) const = default;
  };

  /// Called when the GPU is opened. Sources stay set aside if look() caused the new binding.
  void open() noexcept;

  /// At attach: the first reading failed. Returns false if the source is set aside, and the row must not be
  /// bound. look() reads through `probe`.
  bool admit(const Key& key, Reader probe);

  /// At attach: a row cannot be bound without a first reading. look() reads again, once for all rows with the
  /// same key.
  void await(const Key& key, Reader probe);

  /// The GPU will be bound again for a reason other than look().
  void bind_again() noexcept { binds_again_ = true; }

  bool empty() const noexcept { return waiting_.empty(); }

  /// True when the next look() is due.
  bool is_time(Nanoseconds now) noexcept;

  /// Reads each source. Returns true if binding the GPU again would now bind other rows.
  bool look();

 private:
  struct Source {
    Key key;
    Reader probe;
    bool is_bound;
  };
  bool is_settled(Source& source, bool& changes);

  std::vector<Source> waiting_;
  std::vector<Key> set_aside_;
  Nanoseconds interval_{};
  Nanoseconds next_look_{};  // zero: the first call of is_time() sets it
  bool binds_again_ = false;
};

/// Whether a first reading with this status may succeed later.
constexpr bool may_pass(ReadStatus status) noexcept {
  return status == ReadStatus::failed || status == ReadStatus::timeout;
}

}  // namespace gpumeter::nvidia
