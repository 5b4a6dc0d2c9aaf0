// Activity of the device.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { band } from './band';
import type { Row } from './panel';
import { meanShare, ofGpu } from './promql';
import { SHARE } from './scales';

export const activity: Row = {
  title: 'Activity of GPU $gpu of $instance',
  panels: [
    {
      kind: 'series',
      title: 'Utilisation',
      description:
        'Share of time in which at least one kernel or engine job was resident: the true mean of each step, and the band between the lowest and highest readings.',
      ...SHARE,
      queries: [
        ...band('gpu_utilization_min_ratio', 'gpu_utilization_max_ratio'),
        { expr: meanShare('gpu_busy_seconds_total'), legend: 'mean' },
      ],
    },
    {
      kind: 'series',
      title: 'Engines',
      crowd: true,
      description: 'Share of time in which each engine was busy.',
      ...SHARE,
      queries: [{ expr: meanShare('gpu_engine_busy_seconds_total', 'engine'), legend: '{{engine}}' }],
    },
    {
      kind: 'series',
      title: 'Compute units and pipes',
      crowd: true,
      description:
        'How much of the chip is active while it is busy: compute units with work, occupied slots, and cycles in which each kind of pipe was active.',
      ...SHARE,
      queries: [
        { expr: meanShare('gpu_compute_active_seconds_total'), legend: 'compute units' },
        { expr: ofGpu('gpu_compute_occupancy_ratio'), legend: 'occupancy' },
        { expr: meanShare('gpu_pipe_active_seconds_total', 'pipe'), legend: '{{pipe}}' },
      ],
    },
    {
      kind: 'series',
      title: 'Clocks',
      description: 'Frequency of each clock; its maximum is dashed.',
      unit: units.Hertz,
      min: 0,
      queries: [
        { expr: ofGpu('gpu_clock_hertz'), legend: '{{clock}}' },
        { expr: ofGpu('gpu_clock_max_hertz'), legend: '{{clock}}, highest', look: 'most' },
      ],
    },
  ],
};
