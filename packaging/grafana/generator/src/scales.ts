// Scales shared by several panels. All colour thresholds are in this file, those of the alerts in limits.ts.
import { MappingType, type Threshold, type ValueMapping } from '@grafana/grafana-foundation-sdk/dashboard';
import * as units from '@grafana/grafana-foundation-sdk/units';
import { LIMITS } from './limits';
import type { Scale } from './panel';

const steps = (base: string, ...above: [number, string][]): Threshold[] => [
  { value: null, color: base },
  ...above.map(([value, color]) => ({ value, color })),
];

const words = (...states: [value: number, text: string, color: string][]): ValueMapping[] => [
  {
    type: MappingType.ValueToText,
    options: Object.fromEntries(states.map(([value, text, color], index) => [`${value}`, { text, color, index }])),
  },
];

export const SHARE: Scale = { unit: units.PercentUnit, min: 0, max: 1 };
/** May exceed 1: seconds of several cores. Also for panels with another unit on the right axis, which would inherit the 1. */
export const OPEN_SHARE: Scale = { unit: units.PercentUnit, min: 0 };
export const COUNT: Scale = { unit: units.Short, decimals: 0, min: 0 };
export const NONE_IS_GOOD: Scale = { ...COUNT, thresholds: steps('green', [1, 'red']) };
/** In tables: 0 has no colour, so that the eye finds the rest. */
export const NONE_EXPECTED: Scale = { ...COUNT, thresholds: steps('transparent', [1, 'red']) };
export const FEW_EXPECTED: Scale = { ...COUNT, thresholds: steps('text', [1, 'orange']) };
export const WATTS: Scale = { unit: units.Watt, min: 0 };
export const JOULES: Scale = { unit: units.Joule, min: 0 };
export const SECONDS: Scale = { unit: units.Seconds, min: 0 };
export const PER_SECOND: Scale = { unit: units.Short, min: 0 };
export const FLOPS: Scale = { unit: units.FlopsPerSecond, min: 0 };
export const BYTES: Scale = { unit: units.BytesIEC, min: 0 };
export const BYTES_PER_SECOND: Scale = { unit: units.BytesPerSecondSI, min: 0 };

export const CELSIUS: Scale = { unit: units.Celsius, decimals: 0 };

/** A card throttles at 0; at the alert's limit and at twice that there is still time to act. */
export const MARGIN_LEFT: Scale = {
  ...CELSIUS,
  thresholds: steps('red', [LIMITS.temperatureMarginCelsius, 'orange'], [2 * LIMITS.temperatureMarginCelsius, 'green']),
};
export const MARGIN_CELL: Scale = {
  ...MARGIN_LEFT,
  thresholds: steps('red', [LIMITS.temperatureMarginCelsius, 'orange'], [2 * LIMITS.temperatureMarginCelsius, 'transparent']),
};
/** Any throttling has a colour. A GPU throttled for half of the time is much slower than its model. */
export const THROTTLED_SHARE: Scale = { ...SHARE, thresholds: steps('green', [0.001, 'yellow'], [0.5, 'red']) };
export const THROTTLED_CELL: Scale = { ...SHARE, thresholds: steps('transparent', [0.001, 'yellow'], [0.5, 'red']) };
/** Allocations begin to fail when little memory is left. */
export const FILLED: Scale = { ...SHARE, thresholds: steps('green', [0.9, 'orange'], [LIMITS.memoryUsedRatio, 'red']) };
export const LOAD: Scale = { ...SHARE, thresholds: steps('blue') };
export const OF_LIMIT: Scale = { ...SHARE, thresholds: steps('blue', [0.98, 'orange']) };

/** The alert GpuSlowerThanPeers fires below. */
export const SLOW = LIMITS.benchmarkRatio;
export const OF_PEERS_CELL: Scale = { unit: units.PercentUnit, min: 0, thresholds: steps('orange', [SLOW, 'transparent']) };
export const OF_PEAK: Scale = { ...SHARE, thresholds: steps('blue') };

export const HEALTH_WORDS: Scale = {
  unit: units.Short,
  mappings: words(
    [0, 'failed', 'red'],
    [1, 'degraded', 'orange'],
    [2, 'unknown', 'purple'],
    [3, 'asleep', 'blue'],
    [4, 'ok', 'green'],
  ),
};
export const SEVERITY_WORDS: Scale = {
  unit: units.Short,
  mappings: words([0, 'failed', 'red'], [1, 'degraded', 'orange']),
};
export const THROTTLE_WORDS: Scale = {
  unit: units.Short,
  mappings: words([0, 'clear', 'green'], [1, 'throttled', 'red']),
};
export const UP_WORDS: Scale = {
  unit: units.Short,
  mappings: words([0, 'not working', 'red'], [1, 'works', 'green']),
};
