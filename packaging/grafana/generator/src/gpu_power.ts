// Power, heat and throttling.
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
        'Mean power of each step from the energy counter, the band between the lowest and highest readings, and the enforced limit.',
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
        'Mean power of each metered rail or part of the board. The rails overlap; do not add them.',
      ...WATTS,
      queries: [{ expr: rate(ofGpu('gpu_rail_energy_joules_total')), legend: '{{rail}}' }],
    },
    {
      kind: 'series',
      title: 'Temperatures',
      description: 'Temperature of each sensor; its lowest limit is dashed.',
      unit: units.Celsius,
      queries: [
        { expr: ofGpu('gpu_temperature_celsius'), legend: '{{sensor}}' },
        { expr: `min by (job, instance, gpu, uuid, sensor) (${LIMITS})`, legend: '{{sensor}}, limit', look: 'limit' },
      ],
    },
    {
      kind: 'series',
      title: 'Temperature margin',
      description: 'Degrees between the hottest sensor and its lowest limit; negative above the limit.',
      ...MARGIN_LEFT,
      marks: true,
      queries: [{ expr: MARGIN, legend: 'margin' }],
    },
    {
      kind: 'timeline',
      title: 'Throttle causes',
      description:
        'A cause is marked if it limited the clocks at any time of the step, also between two scrapes. Idle is not throttling.',
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
      description: 'Share of each step in which each reason, by its vendor\'s name, was active. Reasons overlap.',
      ...SHARE,
      queries: [
        { expr: meanShare('gpu_throttle_reason_seconds_total', 'cause', 'reason'), legend: '{{cause}}: {{reason}}' },
      ],
    },
    {
      kind: 'series',
      title: 'Fans',
      description: 'Drive as a share of its maximum on the left, speed on the right.',
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
      description: 'Voltage of each metered rail.',
      unit: units.Volt,
      queries: [{ expr: ofGpu('gpu_voltage_volts'), legend: '{{rail}}' }],
    },
  ],
};
