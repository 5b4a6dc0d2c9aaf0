// Is the GPU, its driver and the daemon there?
local text = import '../lib/annotations.libsonnet';
local duration = import '../lib/duration.libsonnet';
local strings = import '../lib/strings.libsonnet';

function(config, make)
  // A sleeping card is not lost, nor is a card whose driver is closed on request.
  local excused = |||
    unless gpu_suspended == 1
    unless ignoring (gpu, uuid, model, pci_address, serial, name) vendor:gpumeter_collector_released:max
  |||;
  local of_vendor = 'job=%q,instance=%q,vendor=%q';
  local vendor_labels = '$labels.job $labels.instance $labels.vendor';
  local indented(expr) = '  ' + std.strReplace(strings.unended(expr), '\n', '\n  ') + '\n';
  // A card that is still on the bus was not taken out.
  local lost = 'GPU {{ $labels.gpu }} ({{ $labels.uuid }}) is known and not read. It is gone, or its driver does not answer. '
               + 'The alert stands until the GPU is read again.'
               + text.with('vendor:gpumeter_pci_devices:sum{%s} < vendor:gpu_up:count{%s}' % [of_vendor, of_vendor],
                           " Only if the card was taken out: sudo gpumeter forget '{{ $labels.uuid }}'.",
                           arguments='%s %s' % [vendor_labels, vendor_labels]);
  local vendor_value(name, after) =
    text.with('%s{%s}' % [name, of_vendor], ' {{ . | first | value }}%s' % after, arguments=vendor_labels);
  local up = 'up{%s}' % config.gpumeterSelector;
  local missing = {
    summary: '{{ $labels.instance }} has fewer GPUs than expected',
    description: '{{ $value }} GPUs{{ if ne $labels.vendor "any" }} of the vendor {{ $labels.vendor }}{{ end }} are read;'
                 + vendor_value('gpumeter_devices_expected', ' are expected (devices.expected).'),
  };
  local last_read = 'gpu:gpu_up:last_timestamp_seconds';
  local new = '%s > time() - %d > 0' % [last_read, duration.seconds(config.newFailure)];
  [
    // When the GPU was read, in Unix time. The rule reads its own last result, which a daemon that is away for an hour ends.
    {
      record: last_read,
      expr: |||
        (gpu_up == 1) * time()
          or last_over_time(%s[1h]) and gpu_up
      ||| % last_read,
    },
    // New: the GPU was read within the last day.
    make.gpu_alert(
      'GpuLost',
      'critical',
      'gpu_up == 0 and %s\n' % new + indented(excused),
      'is lost',
      lost
    ),
    // The second line replaces a hold time, during which no alert would stand when the one above ends.
    make.gpu_alert(
      'GpuLost',
      'warning',
      'gpu_up == 0 unless %s\n  and gpu_up offset %s == 0\n' % [new, config.hold.GpuLost] + indented(excused),
      'is lost',
      lost,
      hold=null
    ),

    // A card that never came up has no series: only the configured number shows that it is missing. New: all were there within
    // the last day.
    make.alert(
      'GpuExpectedMissing',
      'critical',
      |||
        vendor:gpu_present:count < gpumeter_devices_expected
          and max_over_time(vendor:gpu_present:count[%s]) >= gpumeter_devices_expected
      ||| % config.newFailure,
      missing.summary,
      missing.description
    ),
    make.alert(
      'GpuExpectedMissing',
      'warning',
      |||
        vendor:gpu_present:count < gpumeter_devices_expected
          unless max_over_time(vendor:gpu_present:count[%s]) >= gpumeter_devices_expected
      ||| % config.newFailure,
      missing.summary,
      missing.description
    ),

    // A known card, maybe from before the daemon's restart, is not on the bus; GpuLost pages for it. While its driver is closed on
    // request, an administrator may remove the card from the bus and add it again.
    make.alert(
      'GpuMissingFromBus',
      'warning',
      |||
        vendor:gpumeter_pci_devices:sum < vendor:gpu_up:count
          unless vendor:gpumeter_collector_released:max
      |||,
      'The PCI bus of {{ $labels.instance }} has fewer {{ $labels.vendor }} GPUs than before',
      'The PCI bus has {{ $value }} GPUs of the vendor {{ $labels.vendor }};'
      + vendor_value('vendor:gpu_up:count', ' are known.')
    ),
    // A card on the bus is read by no collector. Device discovery takes up to a minute.
    make.alert(
      'GpuNotMeasured',
      'warning',
      'vendor:gpumeter_pci_devices:sum > vendor:gpumeter_collector_devices:sum\n',
      'A {{ $labels.vendor }} GPU on the PCI bus of {{ $labels.instance }} is not measured',
      'The PCI bus has {{ $value }} GPUs of the vendor {{ $labels.vendor }};'
      + vendor_value('vendor:gpumeter_collector_devices:sum', ' are measured.')
    ),

    make.alert(
      'GpuCollectorDown',
      'warning',
      'gpumeter_collector_up == 0 unless gpumeter_collector_released == 1\n',
      'The collector {{ $labels.collector }} of {{ $labels.instance }} does not work',
      |||
        gpumeter_collector_up of the collector {{ $labels.collector }} has been {{ $value }} for %s (normal: 1).
        Its library does not load, or device discovery fails. None of its GPUs is measured.
      ||| % duration.words(config.hold.GpuCollectorDown)
    ),

    // One machine that is down can wait for the morning: its jobs have ended or go on without the daemon. Many at once have one
    // cause, such as the network, a bad configuration or an upgrade, that somebody can end now.
    make.alert(
      'GpumeterDown',
      'warning',
      '%s == 0\n' % up,
      'gpumeter of {{ $labels.instance }} is not scraped',
      |||
        No scrape of {{ $labels.instance }} has succeeded for %s (up is {{ $value }}, normal: 1). The machine,
        the network or the daemon is down. No GPU alert can fire there.
      ||| % duration.words(config.hold.GpumeterDown),
      is_served=false
    ),
    // A single target that leaves service discovery was removed by someone; if all of them leave, the configuration is wrong.
    make.alert(
      'GpumeterDown',
      'critical',
      |||
        (count by (job) (%(up)s == 0) >= %(number)s)
            / count by (job) (%(up)s) > %(ratio)s
          or
            group by (job) (last_over_time(%(up)s[1d])) unless on (job) %(up)s
      ||| % (config.manyDown { up: up }),
      'Many gpumeters of the job {{ $labels.job }} are not scraped',
      |||
        {{ if printf "up{job=%%q}" $labels.job | query }}No scrape of {{ $value | humanizePercentage }} of the targets of the job
        {{ $labels.job }} has succeeded for %s; the alert's limit is %s.{{ else }}The job {{ $labels.job }} has no target; it had
        {{ with printf "count(last_over_time(up{job=%%q}[1d]))" $labels.job | query }}{{ . | first | value }}{{ end }} within the
        last day.{{ end }} No GPU alert can fire there.
      ||| % [duration.words(config.hold.GpumeterManyDown), config.percent.manyDown.ratio],
      hold='GpumeterManyDown',
      is_served=false
    ),

    // Absent without TLS. When the certificate has ended, no scrape that verifies it succeeds, and GpumeterDown follows.
    make.alert(
      'GpumeterCertificateEnds',
      'warning',
      'gpumeter_web_certificate_expiry_timestamp_seconds - time() < %d\n' % duration.seconds(config.certificateEnds),
      'The TLS certificate of gpumeter on {{ $labels.instance }} ends soon',
      |||
        The certificate ends in {{ $value | humanizeDuration }}; the alert's limit is %s. Scrapes by TLS fail from then on.
      ||| % duration.words(config.certificateEnds)
    ),
  ]
