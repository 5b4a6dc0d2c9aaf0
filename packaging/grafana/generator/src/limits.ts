// Generated from packaging/mixin/config.libsonnet by `./dev mixin`, do not edit.
export const LIMITS = {
  temperatureMarginCelsius: 5,
  memoryUsedRatio: 0.98,
  benchmarkRatio: 0.9,
};
