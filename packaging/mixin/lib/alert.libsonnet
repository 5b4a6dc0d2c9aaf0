// One alerting rule in the form of Prometheus, with its hold time and runbook from the configuration.
local text = import 'annotations.libsonnet';
local strings = import 'strings.libsonnet';

function(config)
  // The runbooks of another daemon that is up; if there is none, the file of the package.
  local elsewhere = '{{ with query ' + strings.json('up{' + config.gpumeterSelector + '} == 1') + ' | sortByLabel "instance" }}'
                    + std.strReplace(config.runbookURL, '$labels.instance', '(first .).Labels.instance')
                    + '{{ else }}file:///usr/share/gpumeter/runbooks.md{{ end }}';
  local is_of_daemon = strings.has(config.runbookURL, '$labels.instance');
  {
    // hold: key of _config.hold, or null for an alert that fires at once. is_served: the alert has an instance, whose daemon answers.
    alert(name, severity, expr, summary, description, hold=name, is_served=true):: {
      alert: name,
      expr: expr,
      [if hold != null then 'for']: config.hold[hold],
      labels: { severity: severity },
      annotations: {
        summary: summary,
        description: text.line(description),
        runbook_url: (if is_served || !is_of_daemon then config.runbookURL else elsewhere) + '#' + std.asciiLower(name),
      },
    },

    // An alert on a GPU: its summary begins with the GPU and the node, its description ends with who used the GPU.
    gpu_alert(name, severity, expr, summary, description, hold=name)::
      self.alert(name,
                 severity,
                 expr,
                 'GPU {{ $labels.gpu }} of {{ $labels.instance }} ' + summary,
                 text.line(description) + text.used_by,
                 hold),
  }
