#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/records.hpp"
#include "collectors/jobs/wire/sender.hpp"

/// Reads and writes the parts of the runs' section of the state file. Writer thread, and the owner before
/// that thread starts.
namespace gpumeter::jobs {

/// Reads the state of an earlier process. Times of an earlier boot are moved to this boot's CLOCK_BOOTTIME.
class SavedReader : public RecordReader {
 public:
  using RecordReader::RecordReader;

  void set_shift(Nanoseconds shift) noexcept { shift_ = shift; }

  Nanoseconds elapsed() { return time() + shift_; }
  Moment moment() {
    Moment moment;
    moment.elapsed = elapsed();
    moment.unix = time();
    return moment;
  }
  std::optional<Moment> optional_moment() { return flag() ? std::optional(moment()) : std::nullopt; }
  double finite() {
    const double value = number();
    if (!std::isfinite(value)) fail();
    return value;
  }
  std::optional<double> optional_finite() {
    const std::optional<double> value = optional_number();
    if (value && !std::isfinite(*value)) fail();
    return value;
  }
  SenderId sender_id() {
    SenderId id;
    id.uid = static_cast<std::uint32_t>(integer(0, UINT32_MAX));
    id.pid = static_cast<std::int32_t>(integer(INT32_MIN, INT32_MAX));
    id.start_time = static_cast<std::uint64_t>(integer(0, INT64_MAX));
    return id;
  }
  Workload workload() {
    const auto kind = cgroup::kKindNames.find(text());
    if (!kind) fail();
    Workload workload;
    workload.kind = kind.value_or(cgroup::Kind::unattributed);
    workload.name = text();
    return workload;
  }
  std::size_t count() { return static_cast<std::size_t>(integer(0, UINT32_MAX)); }

 private:
  Nanoseconds shift_{};
};

inline void save(RecordWriter& out, const Moment& moment) { out.time(moment.elapsed).time(moment.unix); }
inline void save(RecordWriter& out, const std::optional<Moment>& moment) {
  out.flag(moment.has_value());
  if (moment) save(out, *moment);
}
inline void save(RecordWriter& out, const SenderId& id) {
  out.integer(id.uid).integer(id.pid).integer(static_cast<std::int64_t>(id.start_time));
}
inline void save(RecordWriter& out, const Workload& workload) {
  out.text(cgroup::to_string(workload.kind)).text(workload.name);
}

}  // namespace gpumeter::jobs
