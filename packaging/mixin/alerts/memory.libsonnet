// Memory and the errors that blocks count.
local text = import '../lib/annotations.libsonnet';
local duration = import '../lib/duration.libsonnet';

function(config, make)
  local uncorrected = 'gpu:gpu_memory_errors_uncorrected:sum';
  local errors = |||
                   GPU {{ $labels.gpu }} ({{ $labels.uuid }}) counts {{ $value | humanize }} uncorrected memory errors since its driver was
                   loaded; the alert's limit is %s.
                 ||| % config.memoryErrorsUncorrected
                 + text.list(text.selector('gpu_memory_errors_total', "severity='uncorrected',") + ' > 0',
                             'location',
                             'By location:',
                             '{{ $s.Labels.location }} {{ $s.Value | humanize }}');
  local rise = 'gpu:gpu_memory_errors_uncorrected:rise_timestamp_seconds';
  local errors_exist = '%s > %s\n' % [uncorrected, config.memoryErrorsUncorrected];
  local new = '%s > time() - %d > 0\n' % [rise, duration.seconds(config.newFailure)];
  [
    // When the level rose, in Unix time; absent if it has not risen since its first scrape. The rule reads its own last result.
    {
      record: rise,
      expr: |||
        0 * (%s > last_over_time(%s[1h] offset 1m)) + time()
          or last_over_time(%s[1h]) and %s > 0
      ||| % [uncorrected, uncorrected, rise, uncorrected],
    },
    // The level, not increase(): errors before the first scrape count, and the alert stays until the driver is reloaded.
    make.gpu_alert(
      'GpuMemoryErrorsUncorrected',
      'critical',
      errors_exist + '  and ' + new,
      'has uncorrected memory errors',
      errors,
      hold=null
    ),
    make.gpu_alert(
      'GpuMemoryErrorsUncorrected',
      'warning',
      errors_exist + '  unless ' + new,
      'has uncorrected memory errors',
      errors,
      hold=null
    ),
    make.gpu_alert(
      'GpuMemoryErrorsCorrected',
      'warning',
      'gpu:gpu_memory_errors_corrected:increase1h > %s\n' % config.memoryErrorsCorrectedPerHour,
      'has many corrected memory errors',
      |||
        GPU {{ $labels.gpu }} ({{ $labels.uuid }}) corrected {{ $value | humanize }} memory errors within an hour; the alert's limit
        is %s.
      ||| % config.memoryErrorsCorrectedPerHour
      + text.list(text.selector('gpu_memory_errors_total', "severity='corrected',") + ' > 0',
                  'location',
                  'Since the driver was loaded:',
                  '{{ $s.Labels.location }} {{ $s.Value | humanize }}'),
      hold=null
    ),
    // A warning only: the driver resets the card after such an error, which ends the card's jobs.
    make.gpu_alert(
      'GpuHardwareErrorsUncorrected',
      'warning',
      'gpu:gpu_hardware_errors_uncorrected:sum > %s\n' % config.hardwareErrorsUncorrected,
      'has uncorrected hardware errors',
      |||
        GPU {{ $labels.gpu }} ({{ $labels.uuid }}) counts {{ $value | humanize }} uncorrected errors of blocks other than memory
        since its driver was loaded; the alert's limit is %s.
      ||| % config.hardwareErrorsUncorrected
      + text.list(text.selector('gpu_hardware_errors_total', "severity='uncorrected',") + ' > 0',
                  'block',
                  'By block:',
                  '{{ $s.Labels.block }} {{ $s.Value | humanize }}'),
      hold=null
    ),
    // Information only: many programs take all memory at their start.
    make.gpu_alert(
      'GpuMemoryNearlyFull',
      'info',
      'gpu:gpu_memory_used:ratio > %s\n' % config.memoryUsedRatio,
      'has hardly any free memory',
      |||
        {{ $value | humanizePercentage }} of the memory of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) is in use; the alert's limit is
        %s.
      ||| % config.percent.memoryUsedRatio
    ),
  ]
