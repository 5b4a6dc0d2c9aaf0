// The rule files of a mixin, by name, as YAML for readers.
local dcgm = import 'dcgm/packs.libsonnet';
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
    'dcgm-names-4.8.yml': yaml.rules(generated + |||
      dcgm-exporter's metric names up to 4.8, recorded from gpumeter's, so that dashboards and alerts made for it keep working:
        rule_files: [/etc/prometheus/gpumeter/dcgm-names-4.8.yml]
      docs/dcgm-exporter.md lists the units and gaps, and describes the migration. Units are dcgm-exporter's: MHz, MiB, %, mJ, ns.
      If dcgm-exporter has a rate (PROF_PCIE_*, *NVLINK*), the record is our counter's rate over two minutes.
    |||, dcgm['4.8']),
    'dcgm-names-4.9.yml': yaml.rules(generated + |||
      dcgm-exporter's metric names since 4.9, recorded from gpumeter's. Load this pack or dcgm-names-4.8.yml, not both.
        rule_files: [/etc/prometheus/gpumeter/dcgm-names-4.9.yml]
      docs/dcgm-exporter.md lists what is known of 4.9. Units are dcgm-exporter's, which are base units since 4.9.
    |||, dcgm['4.9']),
  }
