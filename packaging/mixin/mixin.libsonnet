// Alerts, rules and dashboards of gpumeter, in the form that Prometheus mixins have.
(import 'config.libsonnet')
+ (import 'rules/rules.libsonnet')
+ (import 'alerts/alerts.libsonnet')
+ (import 'dashboards.libsonnet')
