// Parts of the annotations. All are Go templates, which Prometheus expands when the alert fires.
local strings = import 'strings.libsonnet';

local device = 'job=%q,instance=%q,uuid=%q';
local of_device = '$labels.job $labels.instance $labels.uuid';

// A text block as one line.
local line(text) = std.strReplace(strings.unended(text), '\n', ' ');

// The series of the alert's device, with further matchers in front: selector('gpu_mode', "mode='ecc',").
local selector(name, matchers='') = name + '{' + matchers + device + '}';

// `template` with the result of a query as its dot; nothing if the result is empty. Each %q in the expression is a value of
// `arguments`.
local with(expr, template, sort='', arguments=of_device) =
  '{{- with printf "' + expr + '" ' + arguments + ' | query' + (if sort == '' then '' else ' | sortByLabel "' + sort + '"') + ' }}'
  + template + '{{ end }}';

// " BEFORE value AFTER" of the query's only sample.
local value(expr, before, after, format='') =
  with(expr, ' ' + before + ' {{ . | first | value' + (if format == '' then '' else ' | ' + format) + ' }}' + after);

// " BEFORE item, item." of all samples, in the order of the label.
local list(expr, sort, before, item) =
  with(expr, ' ' + before + '{{ range $i, $s := . }}{{ if $i }},{{ end }} ' + item + '{{ end }}.', sort);

local degrees = '{{ $s.Labels.sensor }} {{ $s.Value | humanize }} °C';
local temperatures = list(selector('gpu_temperature_celsius'), 'sensor', 'Temperatures now:', degrees)
                     + list(selector('gpu_sensor:gpu_temperature_limit_celsius:min'), 'sensor', 'Their limits:', degrees);

// Who used the GPU within the last 10 minutes, also if the failure has just ended the job.
local used_by = list(selector('gpu_holder:gpu_workload_info:last10m'),
                     'workload',
                     'Used within 10 minutes by',
                     'the {{ $s.Labels.kind }} {{ $s.Labels.workload }}{{ with $s.Labels.user }} of {{ . }}{{ end }}');

// Locals, because jsonnet evaluates a field each time it is read.
{
  line:: line,
  selector:: selector,
  with:: with,
  value:: value,
  list:: list,
  temperatures:: temperatures,
  used_by:: used_by,
  utilisation(busy):: value(selector('gpu:gpu_utilization:ratio_rate5m'),
                            'Mean utilisation',
                            ', busy above ' + busy + '.',
                            'humanizePercentage'),
}
