// Parts of the annotations. All are Go templates, which Prometheus expands when the alert fires.
local device = 'job=%q,instance=%q,uuid=%q';
local of_device = '$labels.job $labels.instance $labels.uuid';

{
  // A text block as one line.
  line(text):: std.strReplace(std.rstripChars(text, '\n'), '\n', ' '),

  // The series of the alert's device, with further matchers in front: selector('gpu_mode', "mode='ecc',").
  selector(name, matchers=''):: '%s{%s%s}' % [name, matchers, device],

  // `template` with the result of a query as its dot; nothing if the result is empty. Each %q in the expression is a value of
  // `arguments`.
  with(expr, template, sort='', arguments=of_device)::
    '{{- with printf "%s" %s | query%s }}%s{{ end }}'
    % [expr, arguments, if sort == '' then '' else ' | sortByLabel "%s"' % sort, template],

  // The same for queries without a value of the alert.
  with_constant(expr, template):: '{{- with query "%s" }}%s{{ end }}' % [expr, template],

  // " BEFORE value AFTER" of the query's only sample.
  value(expr, before, after, format='')::
    self.with(expr, ' %s {{ . | first | value%s }}%s' % [before, if format == '' then '' else ' | ' + format, after]),

  // " BEFORE item, item." of all samples, in the order of the label.
  list(expr, sort, before, item)::
    self.with(expr, ' %s{{ range $i, $s := . }}{{ if $i }},{{ end }} %s{{ end }}.' % [before, item], sort),

  temperatures:: self.list(self.selector('gpu_temperature_celsius'),
                           'sensor',
                           'Temperatures now:',
                           '{{ $s.Labels.sensor }} {{ $s.Value | humanize }} °C')
                 + self.list(self.selector('gpu_sensor:gpu_temperature_limit_celsius:min'),
                             'sensor',
                             'Their limits:',
                             '{{ $s.Labels.sensor }} {{ $s.Value | humanize }} °C'),

  utilisation(busy):: self.value(self.selector('gpu:gpu_utilization:ratio_rate5m'),
                                 'Mean utilisation',
                                 ', busy above %s.' % busy,
                                 'humanizePercentage'),

  // Who used the GPU within the last 10 minutes, also if the failure has just ended the job.
  used_by:: self.list(self.selector('gpu_holder:gpu_workload_info:last10m'),
                      'workload',
                      'Used within 10 minutes by',
                      'the {{ $s.Labels.kind }} {{ $s.Labels.workload }}{{ with $s.Labels.user }} of {{ . }}{{ end }}'),
}
