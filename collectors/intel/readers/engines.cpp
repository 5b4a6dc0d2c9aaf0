#include "collectors/intel/readers/engines.hpp"

namespace gpumeter::intel::readers {
namespace {

bool has_events(const IntelContext& context, std::size_t place) noexcept {
  if (place == kBusiest) return context.has_events();
  return context.has_events(static_cast<EngineClass>(place));
}

Sample seconds_in(const EngineTimes& times, std::size_t place) noexcept {
  if (times.status != ReadStatus::ok) return Sample::miss(times.status);
  const std::optional<double> seconds = seconds_of(times, place);
  return seconds ? Sample::of(*seconds) : Sample::miss(ReadStatus::unsupported);
}

}  // namespace

// The events count on through passes that are not observed, and the exported counter does not.
Reader bind_events_busy(IntelContext& context, const ReadSource& source) {
  if (!has_events(context, source.argument)) return {};
  return CountingReader(BusyCount(), [&context, place = source.argument](Settled<BusyCount>& settled) {
    const Sample seconds = seconds_in(context.events(), place);
    if (seconds.status != ReadStatus::ok) return seconds;
    BusyCount& count = settled.current();
    if (context.is_after_gap()) count.restart();
    return Sample::of(count.advance(seconds.value));
  });
}

Reader bind_events_share(IntelContext& context, const ReadSource& source) {
  if (!has_events(context, source.argument)) return {};
  return [&context, place = source.argument, share = BusyShare()]() mutable {
    const EngineTimes& times = context.events();
    const Sample seconds = seconds_in(times, place);
    return seconds.status == ReadStatus::ok ? share.advance(seconds.value, times.at) : seconds;
  };
}

// The scanner's count covers the time that it has observed.
Reader bind_clients_busy(IntelContext& context, const ReadSource& source) {
  if (!context.has_clients()) return {};
  return [&context, place = source.argument] {
    const fdinfo::BusyCounters& clients = context.clients();
    return place == kBusiest ? clients.busiest() : clients.engine(static_cast<EngineClass>(place));
  };
}

Reader bind_clients_share(IntelContext& context, const ReadSource& source) {
  if (!context.has_clients()) return {};
  return [&context, place = source.argument] {
    const fdinfo::BusyCounters& clients = context.clients();
    return place == kBusiest ? clients.utilization() : clients.utilization(static_cast<EngineClass>(place));
  };
}

}  // namespace gpumeter::intel::readers
