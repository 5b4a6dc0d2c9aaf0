// Writes the limits that dashboards draw, for their generator: ./dev mixin
local config = (import 'mixin.libsonnet')._config;
local number = import 'lib/number.libsonnet';
local names = ['temperatureMarginCelsius', 'memoryUsedRatio', 'benchmarkRatio'];

std.rstripChars(|||
  // Generated from packaging/mixin/config.libsonnet by `./dev mixin`, do not edit.
  export const LIMITS = {
  %s
  };
||| % std.join('\n', ['  %s: %s,' % [name, number.text(config[name])] for name in names]), '\n')
