// rules.yml and jobs.yml. Their names are fixed: the dashboards and alerts use the records.
{
  prometheusRules+:: { groups+: [import 'devices.libsonnet', (import 'jobs.libsonnet')($._config)] },
}
