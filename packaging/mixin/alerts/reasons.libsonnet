// Alerts on faults that the daemon judges itself: a series of gpu_health_reason stands for each, with the hold time behind it.
// All other alerts read the values, so they also work without gpu_health_reason.
local text = import '../lib/annotations.libsonnet';
local duration = import '../lib/duration.libsonnet';
local strings = import '../lib/strings.libsonnet';

// Fields: alert, reason (a regular expression if it has a +), what (follows "GPU 0 of node"), text, failure (true if the reason can
// have severity="failed"; the alert then has a critical rule), only (more lines of the expression), and also (true if another fault
// has the alert's name: the label of the reason, which the series has anyway, then distinguishes the rules for promtool).
local faults = [
  {
    alert: 'GpuXid',
    reason: 'xid_([0-9]+|other)',
    failure: true,
    what: 'reported XID {{ reReplaceAll "xid_" "" $labels.reason }}',
    text: 'The driver of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) reported XID {{ reReplaceAll "xid_" "" $labels.reason }}.'
          // The standard page begins a counter with 0 (docs/scrape.md, "The price of a series"); the reason says that it is at least 1.
          + text.with('clamp_min(%s, 1)' % text.selector('gpu_xid_errors_total', 'xid=%q,'),
                      ' Its count is {{ . | first | value }}.',
                      arguments='(reReplaceAll "xid_" "" $labels.reason) $labels.job $labels.instance $labels.uuid'),
  },
  {
    alert: 'GpuXid',
    also: true,
    reason: 'xid_repeated',
    what: 'has an XID that comes back at one place',
    text: 'An XID of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) has come back at the same place within a day, which points at the hardware. '
          + 'http://{{ $labels.instance }}/api/v1/events names the XID and the place.',
  },
  // Of the kernel's log: the driver may go on to answer with its last values. While gpu_up is 0, the alert of that name which
  // reads it stands (presence.libsonnet), two minutes after the value.
  {
    alert: 'GpuLost',
    also: true,
    reason: 'device_lost',
    failure: true,
    only: [
      'and on (job, instance, uuid) gpu_events_total{event="off_bus"} > 0',
      'unless on (job, instance, uuid) gpu_up offset %(GpuLost)s == 0',
    ],
    what: 'has fallen off the bus',
    text: 'The kernel reports that GPU {{ $labels.gpu }} ({{ $labels.uuid }}) no longer answers on the PCI bus. '
          + 'Its driver may still report its last values.',
  },
  {
    alert: 'GpuRecoveryAction',
    reason: 'recovery_action',
    failure: true,
    what: 'needs a recovery action',
    text: 'The driver asks for an action on GPU {{ $labels.gpu }} ({{ $labels.uuid }}).'
          + text.list(text.selector('gpu_recovery_action', "action!='none',") + ' == 1',
                      'action',
                      'Its name for the action:',
                      '{{ $s.Labels.action }}'),
  },
  {
    alert: 'GpuRowRemapFailed',
    reason: 'row_remap_failed',
    failure: true,
    what: 'has a memory row that cannot be replaced',
    text: 'GPU {{ $labels.gpu }} ({{ $labels.uuid }}) could not remap a faulty memory row.'
          + text.list(text.selector('gpu_remapped_rows'),
                      'cause',
                      'Rows remapped so far, by the errors that caused it:',
                      '{{ $s.Labels.cause }} {{ $s.Value }}'),
  },
  {
    alert: 'GpuRowRemapPending',
    reason: 'row_remap_pending',
    what: 'needs a reset to replace a memory row',
    text: 'The next reset of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) replaces a faulty memory row. Until then the row is in use.',
  },
  {
    alert: 'GpuMemoryUnrepairable',
    reason: 'memory_unrepairable',
    failure: true,
    what: 'has memory that cannot be repaired',
    text: 'The memory of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) has errors that neither spare rows nor spare channels can repair.'
          + text.list(text.selector('gpu_memory_errors_total', "severity='uncorrected',") + ' > 0',
                      'location',
                      'Uncorrected errors since the driver was loaded:',
                      '{{ $s.Labels.location }} {{ $s.Value | humanize }}'),
  },
  {
    alert: 'GpuRepairPending',
    reason: 'repair_pending',
    what: 'needs a reset to be repaired',
    text: 'The next reset of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) repairs a faulty part with spare hardware. Until then the part is in use.'
          + text.list(text.selector('gpu_repair_pending') + ' == 1', 'part', 'Part:', '{{ $s.Labels.part }}'),
  },
  {
    alert: 'GpuRetiredPagesPending',
    reason: 'retired_pages_pending',
    what: 'needs a reset to retire memory pages',
    text: 'The next reset of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) retires faulty memory pages. Until then they are in use.'
          + text.list(text.selector('gpu_retired_pages'),
                      'cause',
                      'Pages retired so far, by the errors that caused it:',
                      '{{ $s.Labels.cause }} {{ $s.Value }}'),
  },
  {
    alert: 'GpuLinksDown',
    reason: 'links_down',
    failure: true,
    what: 'has links to other GPUs that are down',
    text: 'Links from GPU {{ $labels.gpu }} ({{ $labels.uuid }}) to other GPUs are down.'
          + text.list(text.selector('gpu_interconnect_links_up'), 'kind', 'Up:', '{{ $s.Value }} ({{ $s.Labels.kind }})')
          + text.list(text.selector('gpu_interconnect_links'), 'kind', 'Present:', '{{ $s.Value }} ({{ $s.Labels.kind }})'),
  },
  {
    alert: 'GpuLinkErrors',
    reason: 'link_.+',
    what: 'has bad links to other GPUs',
    text: 'Links from GPU {{ $labels.gpu }} ({{ $labels.uuid }}) to other GPUs have errors or are slow.'
          + text.list(text.selector('gpu_interconnect_errors_total') + ' > 0',
                      'error',
                      'Errors so far:',
                      '{{ $s.Labels.error }} {{ $s.Value | humanize }}'),
  },
  {
    alert: 'GpuFabricFailed',
    reason: 'fabric_failed',
    failure: true,
    what: 'is not registered with its fabric',
    text: 'The registration of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) with the fabric manager failed. Programs that use several GPUs do not start on it.'
          + text.list(text.selector('gpu_fabric_state') + ' == 1', 'state', 'State:', '{{ $s.Labels.state }}'),
  },
  {
    alert: 'GpuFabricUnhealthy',
    reason: 'fabric_unhealthy',
    what: 'reports an unhealthy fabric',
    text: 'GPU {{ $labels.gpu }} ({{ $labels.uuid }}) reports that its fabric is not healthy.'
          + text.list(text.selector('gpu_fabric_health') + ' == 1', 'state', 'Health:', '{{ $s.Labels.state }}'),
  },
  {
    alert: 'GpuPcieErrors',
    reason: 'pcie_fatal',
    failure: true,
    what: 'has fatal PCIe errors',
    text: 'The PCIe link of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) had fatal errors.'
          + text.list(text.selector('gpu_pcie_errors_total', "severity='fatal',") + ' > 0',
                      'kind',
                      'Errors so far:',
                      '{{ $s.Labels.kind }} {{ $s.Value | humanize }}'),
  },
  {
    alert: 'GpuReset',
    reason: 'device_reset',
    what: 'was reset',
    text: 'GPU {{ $labels.gpu }} ({{ $labels.uuid }}) was reset, which ended the jobs on it.'
          + text.list(text.selector('gpu_events_total') + ' > 0', 'event', 'Events so far:', '{{ $s.Labels.event }} {{ $s.Value }}'),
  },
  {
    alert: 'GpuReadsFailing',
    reason: 'reads_failing',
    failure: true,
    what: 'cannot be read',
    text: 'All reads of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) fail.'
          + text.with('increase(gpumeter_read_errors_total{job=%q,instance=%q,gpu=%q}[5m]) > 0',
                      ' In the last 5 minutes:{{ range $i, $s := . }}{{ if $i }},{{ end }} {{ $s.Labels.status }} {{ $s.Value | humanize }}{{ end }}.',
                      'status',
                      '$labels.job $labels.instance $labels.gpu'),
  },
  {
    alert: 'GpuEccModeDiffers',
    reason: 'ecc_mode_differs',
    what: 'has another ECC mode than its neighbours',
    text: "The ECC mode of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) differs from that of the machine's other GPUs of the same model."
          + text.list(text.selector('gpu_mode', "mode='ecc',") + ' == 1', 'state', 'Its mode:', '{{ $s.Labels.state }}'),
  },
  {
    alert: 'GpuDriverVersionDiffers',
    reason: 'driver_version_differs',
    what: 'has another driver version than its neighbours',
    text: "The driver version of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) differs from that of the machine's other GPUs of the same vendor."
          + text.list(text.selector('gpu_info'), 'driver_version', 'Its version:', '{{ $s.Labels.driver_version }}'),
  },
];

local start = 'gpu_reason:gpu_health_reason:start_timestamp_seconds';

function(config, make)
  local new = 'time() - %d > 0' % duration.seconds(config.newFailure);
  // A restart of the daemon is no repair: its pages lack the reason for some seconds.
  local kept = '[2m]';
  local holds(matchers) = 'last_over_time(gpu_health_reason%s%s)' % [matchers, kept];
  local selector(fault, matchers='') =
    local operator = if strings.has(fault.reason, '+') then '=~' else '=';
    '{reason%s"%s"%s}' % [operator, fault.reason, matchers];
  local only(fault) = std.join('', ['  %s\n' % line for line in std.get(fault, 'only', [])]) % config.hold;
  local rule(fault, severity, expr) = make.gpu_alert(
    fault.alert, severity, expr + only(fault), fault.what, fault.text + ' Suggested action: {{ $labels.action }}.', hold=null
  ) + (if std.objectHas(fault, 'also') then { labels+: { reason: fault.reason } } else {});
  local rules(fault) =
    local failed = selector(fault, ',severity="failed"');
    local began = 'last_over_time(%s%s%s) > %s' % [start, failed, kept, new];
    local critical = [rule(fault, 'critical', '%s\n  and %s\n' % [holds(failed), began])];
    local unless_new = '\n  unless %s\n' % began;
    if std.objectHas(fault, 'failure')
    then critical + [rule(fault, 'warning', holds(selector(fault)) + unless_new)]
    else [rule(fault, 'warning', holds(selector(fault)) + '\n')];

  // When the reason began, in Unix time; 0 if the reason was there when its GPU was scraped for the first time. A reason that
  // returns within an hour is the same failure, also over a restart of the daemon. The rule reads its own last result. It is in
  // the group of its alerts, so that they see it at once.
  [{
    record: start,
    expr: |||
      last_over_time(%s[1h]) and gpu_health_reason
        or gpu_health_reason * time() and on (job, instance, uuid) last_over_time(gpu_up[1h] offset 1m)
        or gpu_health_reason * 0
    ||| % start,
  }] + std.flatMap(rules, faults)
