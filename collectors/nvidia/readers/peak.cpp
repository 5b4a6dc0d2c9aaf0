#include "collectors/nvidia/readers/peak.hpp"

namespace gpumeter::nvidia::readers {

Handle bind_peak(NvidiaContext& context, const ReadSource& source) {
  const std::string_view dtype = kDtypes[source.argument & 0xFFFFFFFF];
  const bool from_table = source.argument >> 32 != 0;
  const std::span<const Peak> peaks = context.peaks();
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    if (peaks[i].dtype == dtype && peaks[i].from_table == from_table) return static_cast<int>(i);
  }
  return std::nullopt;
}

Sample read_peak(NvidiaContext& context, int handle) noexcept {
  return Sample::of(context.peaks()[static_cast<std::size_t>(handle)].flops);
}

Handle bind_bandwidth(NvidiaContext& context, const ReadSource&) {
  return context.peak_bandwidth() ? Handle(0) : std::nullopt;
}

Sample read_bandwidth(NvidiaContext& context, int) noexcept { return Sample::of(*context.peak_bandwidth()); }

}  // namespace gpumeter::nvidia::readers
