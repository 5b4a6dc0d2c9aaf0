#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/nvidia/readers.hpp"
#include "collectors/nvidia/sources.hpp"

namespace gpumeter::nvidia {

using namespace readers;

namespace {

ReadStatus first_reading(NvidiaContext& context, const FieldArgument& wanted) {
  return read_field(context.gpu().caller, wanted.field, wanted.scope).sample.status;
}

/// A field's reader: `of` makes it from the BatchedField. The field joins the batch only if the row is bound.
template <class Of>
Reader bound_field(NvidiaContext& context, const ReadSource& source, Of of) {
  const FieldArgument wanted = unpacked(source.argument);
  const ReadStatus first = first_reading(context, wanted);
  if (!is_admitted(context, source, first, field_probe(context, wanted))) return {};
  return of(BatchedField(context, wanted));
}

}  // namespace

Reader readers::bind_field(NvidiaContext& context, const ReadSource& source) {
  return bound_field(context, source, [](BatchedField field) { return field; });
}

// One driver counts both directions, so both are wide if one is.
Reader readers::bind_wide_field(NvidiaContext& context, const ReadSource& source) {
  constexpr double kMostOf32 = 4294967295;
  const FieldArgument wanted = unpacked(source.argument);
  const FieldReading first = read_field(context.gpu().caller, wanted.field, wanted.scope);
  const ReadStatus status = first.sample.status;
  if (status != ReadStatus::ok) return absent_for_now(context, source, status, field_probe(context, wanted));
  if (first.type != nvml::ValueType::ulong && first.type != nvml::ValueType::ulonglong) return {};
  return [&context, field = BatchedField(context, wanted)] {
    const Sample count = field();
    if (count.status != ReadStatus::ok) return count;
    if (count.value > kMostOf32) context.note_wide_bytes();
    return context.has_wide_bytes() ? count : Sample::of(0);
  };
}

Reader readers::bind_field_is(NvidiaContext& context, const ReadSource& source) {
  return bound_field(context, source, [&](BatchedField field) {
    return [field, wanted = unpacked(source.argument).holds] {
      return flag_of(field(), [&](double state) { return state == wanted; });
    };
  });
}

Reader readers::bind_field_beyond(NvidiaContext& context, const ReadSource& source) {
  return bound_field(context, source, [&](BatchedField field) {
    return [field, known = unpacked(source.argument).holds] {
      return flag_of(field(), [&](double state) { return state >= known; });
    };
  });
}

LinkFields readers::fields_of_links(NvidiaContext& context, FieldArgument wanted, unsigned most) {
  FieldBatch probe;
  for (unsigned link = 0; link < most; ++link) probe.add(wanted.field, link);
  LinkFields found{{}, probe.read(context.gpu().caller, 0).status};
  if (found.first != ReadStatus::ok) return found;
  for (wanted.scope = 0; wanted.scope < most; ++wanted.scope) {
    if (!is_lacking(probe.read(context.gpu().caller, static_cast<int>(wanted.scope)).status))
      found.links.emplace_back(context, wanted);
  }
  return found;
}

Reader readers::bind_all_link_fields(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  auto [links, first] = fields_of_links(context, wanted, nvml::kMostLinks);
  if (links.empty()) return absent_for_now(context, source, first, field_probe(context, wanted));
  return [links = std::move(links)] {
    double sum = 0;
    for (const BatchedField& link : links) {
      const Sample one = link();
      if (one.status != ReadStatus::ok) return one;
      sum += one.value;
    }
    return Sample::of(sum);
  };
}

namespace {

/// One figure of a buffer that the rows of a quantity share. The first reader in a pass drains the buffer.
class BufferReader {
 public:
  using Figure = Sample (SampleBuffer::*)() const noexcept;
  BufferReader(NvidiaContext& context, std::shared_ptr<SampleBuffer> buffer, Figure figure)
      : context_(context),
        rates_(context.gpu().answer<&F::nvmlDeviceGetUtilizationRates>()),
        buffer_(std::move(buffer)),
        figure_(figure) {}

  Sample operator()() noexcept {
    const SampleBuffer::Moment moment{context_.pass(), context_.now(), context_.elapsed()};
    if (buffer_->is_due(moment) && !buffer_->drain(context_.gpu().caller, moment))
      buffer_->stand_in(plain_reading());
    return (*buffer_.*figure_)();
  }
  void settle(bool is_observed) noexcept { buffer_->settle(is_observed); }

 private:
  // Reads the same quantity in the buffer's unit, for a dry buffer.
  Sample plain_reading() noexcept {
    const nvml::SamplingType type = buffer_->type();
    if (type == nvml::kPowerSamples) return ask<&F::nvmlDeviceGetPowerUsage>(context_.gpu().caller);
    const nvml::Utilization& rates = rates_.ask();
    return sample_of(rates_.result(), type == nvml::kGpuSamples ? rates.gpu : rates.memory);
  }

  NvidiaContext& context_;
  Answer<&F::nvmlDeviceGetUtilizationRates>& rates_;
  std::shared_ptr<SampleBuffer> buffer_;
  Figure figure_;
};

Reader bind_buffer(NvidiaContext& context, const ReadSource& source, BufferReader::Figure figure) {
  const auto type = static_cast<nvml::SamplingType>(source.argument);
  const NvidiaContext::OpenedBuffer opened = context.buffer_of(type);
  if (opened.buffer) return BufferReader(context, opened.buffer, figure);
  return absent_for_now(context, source, opened.status, [&gpu = context.gpu().caller, type] {
    SampleBuffer fresh(type);
    const ReadStatus status = fresh.open(gpu);
    return status == ReadStatus::ok ? Sample::of(0) : Sample::miss(status);
  });
}

/// The fields of throttle_time()'s argument; 0: none.
struct ThrottleFields {
  unsigned first, second;
};

/// The fields under the ids of this driver.
ThrottleFields numbered_by_driver(NvmlCaller& gpu, std::uint64_t argument) {
  const std::string version = driver_version(gpu);
  return {throttle_field(static_cast<unsigned>(argument & 0xFFFF), version),
          throttle_field(static_cast<unsigned>(argument >> 16 & 0xFFFF), version)};
}

Sample probe_throttle(NvmlCaller& gpu, ThrottleFields fields) noexcept {
  const Sample first = read_field(gpu, fields.first, 0).sample;
  if (first.status != ReadStatus::ok || fields.second == 0) return first;
  return read_field(gpu, fields.second, 0).sample;
}

// The unit of every field (nvml.h 13.3: "All counters are in nanoseconds"). nvidia-smi prints microseconds,
// but a counter's growth does not reveal its unit. A growth of 1000000 a second could be a reason active all
// the time, or a thousandth of it.
constexpr double kThrottleUnit = 1e-9;

}  // namespace

Reader sampled(NvidiaContext& context, const ReadSource& source) {
  return bind_buffer(context, source, &SampleBuffer::total);
}
Reader sampled_max(NvidiaContext& context, const ReadSource& source) {
  return bind_buffer(context, source, &SampleBuffer::max);
}
Reader sampled_min(NvidiaContext& context, const ReadSource& source) {
  return bind_buffer(context, source, &SampleBuffer::min);
}

Reader sample_period(NvidiaContext& context, const ReadSource& source) {
  return bind_buffer(context, source, &SampleBuffer::period);
}

Reader readers::without_gpm(NvidiaContext& context) {
  const auto probe = [&gpu = context.gpu().caller, instance = context.target().gpu_instance] {
    GpmSampler fresh;
    fresh.open(gpu, instance);
    return fresh.opened() == ReadStatus::ok ? Sample::of(0) : Sample::miss(fresh.opened());
  };
  return absent_for_now(context, {}, context.target().gpm.opened(), probe);
}

Reader gpm(NvidiaContext& context, const ReadSource& source) {
  GpmSampler& gpm = context.target().gpm;
  const std::optional<int> place = gpm.add(static_cast<unsigned>(source.argument));
  if (!place) return without_gpm(context);
  return probed(context, source, [&gpm, place = *place] { return gpm.read(place); });
}

Reader readers::bind_gpm_mean(NvidiaContext& context, const ReadSource& source) {
  GpmSampler& gpm = context.target().gpm;
  std::vector<int> places;
  for (std::uint64_t metric = 0; metric < source.argument >> 32; ++metric) {
    const auto place = gpm.add(static_cast<unsigned>((source.argument & 0xFFFFFFFF) + metric));
    if (place) places.push_back(*place);
  }
  if (places.empty()) return without_gpm(context);
  return probed(context, source, [&gpm, places = std::move(places)] {
    double sum = 0;
    for (const int place : places) {
      const Sample one = gpm.read(place);
      if (one.status != ReadStatus::ok) return one;
      sum += one.value;
    }
    return Sample::of(sum / static_cast<double>(places.size()));
  });
}

// A field that fails for the moment does not prove that there is no link.
bool has_no_link(NvidiaContext& context, unsigned count_field) {
  const Sample count = read_field(context.gpu().caller, count_field, 0).sample;
  return count.status == ReadStatus::unsupported || (count.status == ReadStatus::ok && count.value < 1);
}

Reader gpm_total(NvidiaContext& context, const ReadSource& source) {
  const auto link_count = static_cast<unsigned>(source.argument >> 32);
  if (link_count != 0 && has_no_link(context, link_count)) return {};
  GpmSampler& gpm = context.target().gpm;
  const std::optional<int> place = gpm.add(static_cast<unsigned>(source.argument & 0xFFFFFFFF));
  if (!place) return without_gpm(context);
  const auto read = [&gpm, place = *place] { return gpm.read(place); };
  if (!is_admitted(context, source, read().status, read)) return {};
  return CountingReader(Tally(), [&context, read](Settled<Tally>& tally) {
    const Sample rate = read();
    if (rate.status != ReadStatus::ok) return rate;
    return tally.current().add(rate.value * to_seconds(context.elapsed()));
  });
}

// HW_SLOWDOWN is set together with the bits of its causes. If it is set alone, it is a cause of its own.
Reader reasons(NvidiaContext& context, const ReadSource& source) {
  constexpr std::uint64_t kOfHwSlowdown = nvml::kReasonHwThermal | nvml::kReasonHwPowerBrake;
  if (source.argument == 0) return {};  // available only as a counter
  NvmlTarget& gpu = context.gpu();
  Sample supported = ask<&F::nvmlDeviceGetSupportedClocksEventReasons>(gpu.caller);
  if (supported.status != ReadStatus::ok)
    supported = ask<&F::nvmlDeviceGetSupportedClocksThrottleReasons>(gpu.caller);
  const bool is_known = supported.status != ReadStatus::ok ||
                        (static_cast<std::uint64_t>(supported.value) & source.argument) != 0;
  if (!is_known) return {};
  const auto read = [mask = source.argument](auto& answer) {
    std::uint64_t held = answer.ask();
    if ((held & kOfHwSlowdown) != 0) held &= ~std::uint64_t{nvml::kReasonHwSlowdown};
    return sample_of(answer.result(), (held & mask) != 0 ? 1 : 0);
  };
  if (gpu.caller.has<&F::nvmlDeviceGetCurrentClocksEventReasons>()) {
    auto& present = gpu.answer<&F::nvmlDeviceGetCurrentClocksEventReasons>();
    return probed(context, source, [read, &present] { return read(present); });
  }
  auto& former = gpu.answer<&F::nvmlDeviceGetCurrentClocksThrottleReasons>();
  return probed(context, source, [read, &former] { return read(former); });
}

Reader readers::bind_throttle_time(NvidiaContext& context, const ReadSource& source) {
  NvmlCaller& gpu = context.gpu().caller;
  const ThrottleFields fields = numbered_by_driver(gpu, source.argument);
  if (fields.first == 0) return {};  // available only as a reason
  const auto probe = [&gpu, fields] { return probe_throttle(gpu, fields); };
  const ReadStatus status = probe().status;
  if (status != ReadStatus::ok) {
    const ReadSource numbered{source.name, std::uint64_t{fields.second} << 16 | fields.first};
    return absent_for_now(context, numbered, status, probe);
  }
  const BatchedField first(context, {fields.first, Tier::fast, 0});
  std::optional<BatchedField> second;
  if (fields.second != 0) second.emplace(context, FieldArgument{fields.second, Tier::fast, 0});
  return CountingReader(Tally(), [&context, first, second](Settled<Tally>& settled) {
    const Sample one = first();
    const Sample other = second ? (*second)() : Sample::of(0);
    if (one.status != ReadStatus::ok) return one;
    if (other.status != ReadStatus::ok) return other;
    Tally& tally = settled.current();
    const double grown = tally.growth[0].of(one.value) + tally.growth[1].of(other.value);
    return tally.add(std::min(grown * kThrottleUnit, to_seconds(context.elapsed())));
  });
}

}  // namespace gpumeter::nvidia
