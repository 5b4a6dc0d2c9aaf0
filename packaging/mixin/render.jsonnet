// Writes the rule files of packaging/prometheus: ./dev mixin
(import 'render.libsonnet')(import 'mixin.libsonnet')
