// Heat, throttling, fans and clocks. A card at its power limit is well used, so that is no alert.
local text = import '../lib/annotations.libsonnet';
local strings = import '../lib/strings.libsonnet';

function(config, make)
  local throttled(cause, ratio) = 'gpu_cause:gpu_throttle_seconds:rate5m{cause="%s"} > %s\n' % [cause, ratio];
  local share(what, limit) = |||
    %s GPU {{ $labels.gpu }} ({{ $labels.uuid }}) for {{ $value | humanizePercentage }} of the last 5 minutes; the alert's limit
    is %s.
  ||| % [what, config.percent[limit]];
  local reasons(cause) = text.list(
    'rate(%s[5m]) > 0.001' % text.selector('gpu_throttle_reason_seconds_total', "cause='%s'," % cause),
    'reason',
    'By reason:',
    '{{ $s.Labels.reason }} {{ $s.Value | humanizePercentage }}'
  );
  local hot = |||
    count without (vendor, gpu, uuid, model, pci_address, serial, name) (
      gpu:gpu_temperature_margin_celsius:min < %(temperatureMarginCelsius)s
        or sum without (cause) (gpu_cause:gpu_throttle_seconds:rate5m{cause="thermal"}) > %(thermalThrottlingRatio)s
    )
  ||| % config;
  [
    // A warning only: the card protects itself, and nobody changes a fan at night.
    make.gpu_alert(
      'GpuThermalThrottling',
      'warning',
      throttled('thermal', config.thermalThrottlingRatio),
      'is throttled by heat',
      text.line(share('Heat limited the clocks of', 'thermalThrottlingRatio')) + text.temperatures
    ),
    // The fast one of two: a cooler that failed shows within a minute, and a card past its limit at once. The mean of five minutes above
    // is for the card that gets hotter by and by.
    make.gpu_alert(
      'GpuOverheating',
      'warning',
      |||
        sum without (cause) (clamp_max(rate(gpu_throttle_seconds_total{cause="thermal"}[1m]), 1)) > %s
          or gpu:gpu_temperature_margin_celsius:min < 0
      ||| % config.overheatingRatio,
      'overheats',
      |||
        GPU {{ $labels.gpu }} ({{ $labels.uuid }}) is past a temperature limit, or heat limited its clocks for more than %s of the last minute.
      ||| % config.percent.overheatingRatio
      + text.value(text.selector('gpu:gpu_temperature_margin_celsius:min'), 'Its nearest limit is', ' °C away.', 'humanize')
      + text.temperatures
    ),
    make.gpu_alert(
      'GpuHardwareThrottling',
      'warning',
      throttled('hardware', config.hardwareThrottlingRatio),
      'is slowed down by its board',
      text.line(share('The board limited the clocks of', 'hardwareThrottlingRatio')) + reasons('hardware') + text.temperatures
    ),
    make.gpu_alert(
      'GpuPowerBrake',
      'warning',
      'gpu:gpu_power_brake:rate5m > %s\n' % config.powerBrakeRatio,
      'is slowed down by the power supply',
      text.line(share("The power supply's brake signal slowed down", 'powerBrakeRatio'))
      + text.value(text.selector('gpu:gpu_energy_joules:rate5m'), 'Its mean power is', ' W.', 'humanize')
    ),
    make.gpu_alert(
      'GpuReliabilityThrottling',
      'warning',
      throttled('reliability', config.reliabilityThrottlingRatio),
      'is throttled to protect the chip',
      text.line(share('Limits that protect the chip slowed down', 'reliabilityThrottlingRatio')) + reasons('reliability')
    ),
    make.gpu_alert(
      'GpuTemperatureNearLimit',
      'warning',
      'gpu:gpu_temperature_margin_celsius:min < %s\n' % config.temperatureMarginCelsius,
      'is near a temperature limit',
      |||
        The nearest limit of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) is {{ $value | humanize }} °C away; the alert's limit is
        %s °C.
      ||| % config.temperatureMarginCelsius + text.temperatures
    ),
    // By machine: one hot card is a matter of the card, many at once are one of the cooling around them. No critical alert, because
    // the cards protect themselves; a site whose staff can act on the room's cooling at night raises the severity.
    make.alert(
      'GpuManyHot',
      'warning',
      |||
        (%(hot)s >= %(number)s)
          / count without (vendor, gpu, uuid, model, pci_address, serial, name) (gpu_up == 1) > %(ratio)s
      ||| % (config.manyHot { hot: strings.unended(hot) }),
      'Many GPUs of {{ $labels.instance }} are hot at once',
      |||
        {{ $value | humanizePercentage }} of the GPUs of {{ $labels.instance }} that are read are within %s °C of a temperature limit or
        throttled by heat; the alert's limit is %s. A cause outside of the cards is likely: the room, the chassis' fans, the airflow.
      ||| % [config.temperatureMarginCelsius, config.percent.manyHot.ratio]
    ),
    make.gpu_alert(
      'GpuFanStopped',
      'warning',
      |||
        (gpu_fan_speed_rpm < 1 or gpu_fan_speed_ratio < 0.01)
          and ignoring (fan) max without (sensor) (gpu_temperature_celsius{sensor="core"}) > %(fanTemperatureCelsius)s
      ||| % config,
      'is hot and its fan {{ $labels.fan }} stands still',
      'The fan {{ $labels.fan }} of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) does not turn.' + text.temperatures
    ),
    // Throttling explains low clocks, and has its own alerts.
    make.gpu_alert(
      'GpuClocksLow',
      'warning',
      |||
        gpu:gpu_clock:ratio_max5m < %(clockRatio)s
          and gpu:gpu_utilization:ratio_rate5m > %(busyRatio)s
          unless sum without (cause) (gpu_cause:gpu_throttle_seconds:rate5m) > 0.01
      ||| % config,
      'is busy at low clocks',
      |||
        The graphics clock of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) was at most {{ $value | humanizePercentage }} of its maximum,
        and nothing throttles it; the alert's limit is %s.
      ||| % config.percent.clockRatio
      + text.utilisation(config.percent.busyRatio)
    ),
  ]
