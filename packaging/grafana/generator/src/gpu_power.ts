// What the device's work costs and what holds it back: power, heat, throttling.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { band } from './band';
import type { Row } from './panel';
import { MARGIN, POWER, meanShare, ofGpu, rate } from './promql';
import { MARGIN_LEFT, OPEN_SHARE, SHARE, THROTTLE_WORDS, WATTS } from './scales';

const LIMITS = ofGpu('gpu_temperature_limit_celsius');

export const power: Row = {
  title: 'Power, heat and throttling of GPU $gpu of $instance',
  panels: [
    {
      kind: 'series',
      title: 'Power',
      description:
        'Mean power of each step from the energy counter, the band between the lowest and the highest reading, and the limit that is enforced.',
      ...WATTS,
      queries: [
        ...band('gpu_power_min_watts', 'gpu_power_max_watts'),
        { expr: POWER, legend: 'mean' },
        { expr: ofGpu('gpu_power_limit_watts', 'limit="enforced"'), legend: 'limit', look: 'limit' },
      ],
    },
    {
      kind: 'series',
      title: 'Power by rail',
      description:
        'Mean power of each rail or part of the board that is metered. They are views of the board, not parts that add up to it.',
      ...WATTS,
      queries: [{ expr: rate(ofGpu('gpu_rail_energy_joules_total')), legend: '{{rail}}' }],
    },
    {
      kind: 'series',
      title: 'Temperatures',
      description: 'Each sensor; dashed, the lowest of its limits.',
      unit: units.Celsius,
      queries: [
        { expr: ofGpu('gpu_temperature_celsius'), legend: '{{sensor}}' },
        { expr: `min by (job, instance, gpu, uuid, sensor) (${LIMITS})`, legend: '{{sensor}}, limit', look: 'limit' },
      ],
    },
    {
      kind: 'series',
      title: 'Temperature margin',
      description: 'Degrees that the hottest sensor is below its lowest limit; below 0 it is over it.',
      ...MARGIN_LEFT,
      marks: true,
      queries: [{ expr: MARGIN, legend: 'margin' }],
    },
    {
      kind: 'timeline',
      title: 'Throttle causes',
      description:
        'A cause is marked where it held the clocks down at any time of the step, also between two scrapes. Idle is not throttling.',
      ...THROTTLE_WORDS,
      queries: [
        {
          expr: `max by (job, instance, gpu, uuid, cause) (${rate(ofGpu('gpu_throttle_seconds_total'))} > bool 0)`,
          legend: '{{cause}}',
        },
      ],
    },
    {
      kind: 'series',
      title: 'Throttled share of time by reason',
      crowd: true,
      description: 'For how much of each step each reason held, in the words of its vendor. Reasons overlap.',
      ...SHARE,
      queries: [
        { expr: meanShare('gpu_throttle_reason_seconds_total', 'cause', 'reason'), legend: '{{cause}}: {{reason}}' },
      ],
    },
    {
      kind: 'series',
      title: 'Fans',
      description: 'Drive against its maximum on the left, speed on the right.',
      ...OPEN_SHARE,
      queries: [
        { expr: ofGpu('gpu_fan_speed_ratio'), legend: 'fan {{fan}}' },
        {
          expr: ofGpu('gpu_fan_speed_rpm'),
          legend: 'fan {{fan}} speed',
          look: 'right',
          unit: units.RevolutionsPerMinute,
        },
      ],
    },
    {
      kind: 'series',
      title: 'Voltage',
      description: 'Of each rail that is metered.',
      unit: units.Volt,
      queries: [{ expr: ofGpu('gpu_voltage_volts'), legend: '{{rail}}' }],
    },
  ],
};
