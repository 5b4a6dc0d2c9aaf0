// The forms of the expressions that rows.libsonnet uses.
local strings = import '../lib/strings.libsonnet';
local join = std.join;
local indented(lines) = join('\n', ['(\n    ' + join('\n    ', lines), '  )']);

// The series of instances of a divided card, with the labels that dcgm-exporter gives them.
local instances(family, without, matcher) =
  |||
    or sum without (%s) (label_replace(label_replace(%s,
      "GPU_I_PROFILE", "$1", "partition", "(.+):.+"), "GPU_I_ID", "$1", "partition", ".+:(.+)"))
  ||| % [without, family + matcher];

{
  // The series of a family whose label has this value, without the label.
  one(family, label, value):: 'sum without (' + label + ') (' + family + '{' + label + '="' + value + '"})',

  // Of a card that is divided, each instance's value; of others, the card's.
  divided(family, label=null, value=null)::
    local partition = std.strReplace(family, 'gpu_', 'gpu_partition_');
    local matcher = if label == null then '' else '{%s="%s"}' % [label, value];
    local whole = if label == null then family else $.one(family, label, value);
    indented(
      ['%s unless on (job, instance, uuid) %s' % [whole, partition]]
      + strings.lines(instances(partition, join(', ', std.filter(function(x) x != null, [label, 'partition'])), matcher))
    ),

  // Cards before Hopper do not report the graphics engine. For these, the share of time with a resident kernel is used.
  graphics:: indented(
    [
      'sum without (engine) (gpu_engine_utilization_ratio{engine="graphics"}) unless on (job, instance, uuid) gpu_partition_utilization_ratio',
      'or gpu_utilization_ratio unless on (job, instance, uuid) gpu_partition_utilization_ratio',
    ] + strings.lines(instances('gpu_partition_utilization_ratio', 'partition', ''))
  ),

  nvlink(directions)::
    'sum without (kind) (%s)' % join(' + ', ['rate(gpu_interconnect_%s_bytes_total{kind="nvlink"}[2m])' % each for each in directions]),
  linkErrors(kind):: 'sum without (kind, error) (gpu_interconnect_errors_total{kind="nvlink",error="%s"})' % kind,
  reason(reason):: 'sum without (cause, reason) (gpu_throttle_reason_seconds_total{reason="%s"})' % reason,
  errors(family, severity):: 'sum without (severity, location) (%s{severity="%s"})' % [family, severity],

  // Turns a label into a value: the label becomes the upper bound of a histogram's only bucket.
  lastXid:: indented([
    'max without (xid) (histogram_quantile(1,',
    '  label_replace(gpu:gpu_xid_last_timestamp_seconds:newest ^ 0, "le", "$1", "xid", "(.+)") or label_replace(gpu:gpu_xid_last_timestamp_seconds:newest ^ 0, "le", "+Inf", "xid", ".+")))',
    'or 0 * sum without (xid) (gpu_xid_errors_total)',
  ]),
  newestXid:: {
    record: 'gpu:gpu_xid_last_timestamp_seconds:newest',
    expr: |||
      gpu_xid_last_timestamp_seconds{xid=~"[0-9]+"} > 0
        == on (job, instance, uuid) group_left () max by (job, instance, uuid) (gpu_xid_last_timestamp_seconds{xid=~"[0-9]+"})
    |||,
  },
  xidsOfFiveMinutes:: 'label_replace(round(increase(gpu_xid_errors_total[5m])) > 0, "window_size_in_ms", "300000", "xid", ".+")',
  licensed:: '(sum without (state) (gpu_license_state{state="licensed"}) or 0 * max without (state) (gpu_license_state))',
}
