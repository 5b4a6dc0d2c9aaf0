// One alerting rule in the form of Prometheus, with its hold time and runbook from the configuration.
local text = import 'annotations.libsonnet';

function(config) {
  // hold: key of _config.hold, or null for an alert that fires at once.
  alert(name, severity, expr, summary, description, hold=name):: {
    alert: name,
    expr: expr,
    [if hold != null then 'for']: config.hold[hold],
    labels: { severity: severity },
    annotations: {
      summary: summary,
      description: text.line(description),
      runbook_url: '%s#%s' % [config.runbookURL, std.asciiLower(name)],
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
