// alerts.yml. Both sides of a comparison carry the same labels, except those named by `ignoring`, so no join by instance or uuid
// matches another machine's device. Absent values raise no alert.
//
// critical pages somebody at night, so it is for a new failure of a GPU: one that ends jobs and that a drain, a reset or a reboot
// can help. After _config.newFailure, or if the failure is older than the first scrape, the alert is a warning. Records that read
// their own last result remember when a failure began; windows of a day would cost a thousand GPUs a second per evaluation.
local number = import '../lib/number.libsonnet';

{
  local make = (import '../lib/alert.libsonnet')($._config),
  local rules(file) = file(number.texts($._config), make),

  prometheusAlerts+:: {
    groups+: [
      { name: 'gpumeter-health', rules: rules(import 'reasons.libsonnet') },
      {
        name: 'gpumeter-alerts',
        rules: rules(import 'presence.libsonnet') + rules(import 'heat.libsonnet') + rules(import 'memory.libsonnet')
               + rules(import 'pcie.libsonnet') + rules(import 'benchmarks.libsonnet') + rules(import 'jobs.libsonnet'),
      },
    ],
  },
}
