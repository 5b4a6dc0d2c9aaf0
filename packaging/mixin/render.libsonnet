// The rule files of a mixin, by name, as YAML for readers.
local yaml = import 'lib/yaml.libsonnet';

local generated = |||
  Generated from the mixin of gpumeter, do not edit. The reasons of rules and limits are comments there.
|||;

function(mixin)
  local group(name) = [item for item in mixin.prometheusRules.groups if item.name == name];
  {
    'alerts.yml': yaml.rules(generated + |||
      Alerts for the GPUs of all vendors and the jobs on them. Load rules.yml and jobs.yml too.
      critical: act now, also at night. warning: act within the day. info: for dashboards.
    |||, mixin.prometheusAlerts.groups),
    'rules.yml': yaml.rules(generated + |||
      Records of devices for alerts and dashboards.
        rule_files: [/etc/prometheus/gpumeter/rules.yml, /etc/prometheus/gpumeter/jobs.yml, /etc/prometheus/gpumeter/alerts.yml]
    |||, group('gpumeter-records')),
    'jobs.yml': yaml.rules(generated + |||
      Records of runs (ml_*) and workloads (gpu_workload_*).
    |||, group('gpumeter-jobs')),
  }
