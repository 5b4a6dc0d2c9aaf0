// Records of devices for alerts and dashboards.
// A rule keeps every label that it does not sum over. Labels of the scrape job (rack, cluster) stay, and two jobs that scrape
// one machine stay apart.
{
  name: 'gpumeter-records',
  rules: [
    // The true mean utilisation: busy time over observed time, so that a gap (hung driver, sleep) is neither busy nor idle.
    {
      record: 'gpu:gpu_utilization:ratio_rate5m',
      expr: |||
        rate(gpu_busy_seconds_total[5m])
          / ignoring (tier) (rate(gpu_observed_seconds_total{tier="fast"}[5m]) > 0)
      |||,
    },
    // OFU: the share of the tensor cores' peak that was used, whatever a job reports. Cycles of the tensor cores, over those
    // of the observed time at the clock of the peak.
    {
      record: 'gpu:gpu_tensor_peak:ratio_rate5m',
      expr: |||
        rate(gpu_tensor_peak_seconds_total[5m])
          / ignoring (tier) (rate(gpu_observed_seconds_total{tier="fast"}[5m]) > 0)
      |||,
    },
    // The exact mean of the multiprocessors' clock in hertz, by its cycles.
    {
      record: 'gpu:gpu_clock_hertz:rate5m',
      expr: |||
        rate(gpu_cycles_total[5m])
          / ignoring (tier) (rate(gpu_observed_seconds_total{tier="fast"}[5m]) > 0)
      |||,
    },
    // The mean power by the energy counter, in watts.
    {
      record: 'gpu:gpu_energy_joules:rate5m',
      expr: 'rate(gpu_energy_joules_total[5m])',
    },
    // The mean power as a share of the enforced limit.
    {
      record: 'gpu:gpu_power_limit:ratio_rate5m',
      expr: |||
        rate(gpu_energy_joules_total[5m])
          / ignoring (limit) (gpu_power_limit_watts{limit="enforced"} > 0)
      |||,
    },
    // Seconds per second in which each cause limited the clocks. The clamp removes the part that rate() extrapolates.
    {
      record: 'gpu_cause:gpu_throttle_seconds:rate5m',
      expr: 'clamp_max(rate(gpu_throttle_seconds_total[5m]), 1)',
    },
    // Degrees to the nearest limit of any sensor; below 0 past it.
    {
      record: 'gpu:gpu_temperature_margin_celsius:min',
      expr: 'min without (sensor) (gpu_temperature_margin_celsius)',
    },
    // The lowest limit of each sensor, also if a driver reports only the margin.
    {
      record: 'gpu_sensor:gpu_temperature_limit_celsius:min',
      expr: 'gpu_temperature_celsius + gpu_temperature_margin_celsius',
    },
    // Seconds per second in which the power supply's brake signal limited the clocks.
    {
      record: 'gpu:gpu_power_brake:rate5m',
      expr: |||
        clamp_max(sum without (cause, reason) (rate(gpu_throttle_reason_seconds_total{reason="hw_power_brake"}[5m])), 1)
      |||,
    },
    // Highest graphics clock of 5 minutes as a share of its maximum; a busy card may clock down between two batches.
    {
      record: 'gpu:gpu_clock:ratio_max5m',
      expr: |||
        sum without (clock) (max_over_time(gpu_clock_hertz{clock="graphics"}[5m]) / (gpu_clock_max_hertz{clock="graphics"} > 0))
      |||,
    },
    // Used share of the device's own memory, or of the host's memory if the device has none of its own.
    {
      record: 'gpu:gpu_memory_used:ratio',
      expr: |||
        sum without (memory) (gpu_memory_used_bytes{memory=~"vram|unified"} / (gpu_memory_size_bytes{memory=~"vram|unified"} > 0))
      |||,
    },
    // Corrected memory errors within the last hour.
    {
      record: 'gpu:gpu_memory_errors_corrected:increase1h',
      expr: 'sum without (severity, location) (increase(gpu_memory_errors_total{severity="corrected"}[1h]))',
    },
    {
      record: 'gpu:gpu_memory_errors_uncorrected:sum',
      expr: 'sum without (severity, location) (gpu_memory_errors_total{severity="uncorrected"})',
    },
    {
      record: 'gpu:gpu_hardware_errors_uncorrected:sum',
      expr: 'sum without (severity, block) (gpu_hardware_errors_total{severity="uncorrected"})',
    },
    // 1 if a collector's drivers are closed on request, otherwise absent. The label is the bus's as well.
    {
      record: 'vendor:gpumeter_collector_released:max',
      expr: |||
        max without (collector) (label_replace(
          gpumeter_collector_released == 1, "vendor", "$1", "collector", "(.+)"))
      |||,
    },
    // Known devices, read or lost, by vendor, summed over all labels that `device_labels` may add.
    {
      record: 'vendor:gpu_up:count',
      expr: 'count without (gpu, uuid, model, pci_address, serial, name) (gpu_up)',
    },
    // Devices that are read, asleep, or closed on request.
    {
      record: 'gpu:gpu_present:bool',
      expr: |||
        0 * (
            gpu_up == 1
          or
            gpu_suspended == 1
          or
            gpu_up and ignoring (gpu, uuid, model, pci_address, serial, name) vendor:gpumeter_collector_released:max
        ) + 1
      |||,
    },
    // Their number, for each series of gpumeter_devices_expected, whose vendor="any" is all vendors together. Without the label
    // `vendor` on devices only that one can be counted.
    {
      record: 'vendor:gpu_present:count',
      expr: |||
        count without (gpu, uuid, model, pci_address, serial, name) (gpu:gpu_present:bool)
          or label_replace(
            count without (vendor, gpu, uuid, model, pci_address, serial, name) (gpu:gpu_present:bool), "vendor", "any", "", "")
          or 0 * gpumeter_devices_expected
            unless ignoring (vendor) count without (gpu, uuid, model, pci_address, serial, name) (gpu_up{vendor=""})
      |||,
    },
    // Devices of working collectors, with the bus's label: a collector has the name of its vendor.
    {
      record: 'vendor:gpumeter_collector_devices:sum',
      expr: |||
        sum without (collector) (label_replace(
          gpumeter_collector_devices and gpumeter_collector_up == 1, "vendor", "$1", "collector", "(.+)"))
      |||,
    },
    // GPUs on the bus. When the last GPU of a vendor disappears, so does its series. This record is then 0 for a day, as
    // long as a lost device is known (until `gpumeter forget`). It is absent if the daemon does not answer.
    {
      record: 'vendor:gpumeter_pci_devices:sum',
      expr: |||
        gpumeter_pci_devices
          or 0 * last_over_time(gpumeter_pci_devices[1d])
            and ignoring (vendor, version, revision, branch, compiler) gpumeter_build_info
      |||,
    },
  ] + (import 'benchmarks.libsonnet'),
}
