// The GPUs of a fleet: one row each, and the most important values over time.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Column, Row } from './panel';
import { HEALTH, MARGIN, MEMORY_USED, POWER, POWER_OF_LIMIT, THROTTLED, meanShare, perGpu } from './promql';
import { FILLED, HEALTH_WORDS, LOAD, MARGIN_LEFT, OF_LIMIT, SHARE, THROTTLED_SHARE, WATTS } from './scales';

const DEVICE = '{{instance}} GPU {{gpu}}';
const UTILIZATION = meanShare('gpu_busy_seconds_total');
const ONE_GPU =
  '/d/gpumeter-gpu?${datasource:queryparam}&var-job=${__data.fields.job}&var-instance=${__data.fields.Instance}&var-gpu=${__data.fields.GPU}&${__url_time_range}';

const columns: Column[] = [
  { name: 'job', label: 'job', hidden: true },
  { name: 'Instance', label: 'instance', width: 220 },
  { name: 'GPU', label: 'gpu', width: 60, link: { title: 'This GPU in depth', url: ONE_GPU } },
  { name: 'Model', label: 'model' },
  { name: 'Health', expr: HEALTH, cell: 'colour', ...HEALTH_WORDS, width: 130 },
  { name: 'Utilisation', expr: perGpu('max', UTILIZATION), cell: 'bar', ...LOAD, decimals: 0 },
  { name: 'Power', expr: perGpu('max', POWER), ...WATTS, decimals: 0, width: 90 },
  { name: 'Power of limit', expr: POWER_OF_LIMIT, cell: 'bar', ...OF_LIMIT, decimals: 0 },
  { name: 'Margin', expr: MARGIN, cell: 'colour', ...MARGIN_LEFT, width: 90 },
  { name: 'Throttled', expr: THROTTLED, cell: 'colour', ...THROTTLED_SHARE, decimals: 0, width: 90 },
  { name: 'Memory used', expr: MEMORY_USED, cell: 'bar', ...FILLED, decimals: 0 },
];

export const devices: Row = {
  title: 'GPUs',
  panels: [
    {
      kind: 'table',
      title: 'Every GPU',
      description:
        'The worst first. Utilisation, power and throttling are means over the last rate interval; the margin is that of the hottest sensor. Cells are empty if the card does not report the value or if it cannot be read now.',
      unit: units.Short,
      columns,
      sortBy: ['Health', 'Margin'],
    },
    {
      kind: 'timeline',
      title: 'Health',
      description:
        'Not read: lost, or its driver hangs. Needs attention: the driver requests a recovery action, or a memory row could not be remapped.',
      ...HEALTH_WORDS,
      queries: [{ expr: HEALTH, legend: DEVICE }],
    },
    {
      kind: 'series',
      title: 'Throttled share of time',
      description: 'Share of the longest cause. The GPU dashboard shows the cause.',
      ...SHARE,
      queries: [{ expr: THROTTLED, legend: DEVICE }],
    },
    {
      kind: 'series',
      title: 'Utilisation',
      description:
        'Share of time in which at least one kernel or engine job was resident; true mean of each step.',
      ...SHARE,
      queries: [{ expr: UTILIZATION, legend: DEVICE }],
    },
    {
      kind: 'series',
      title: 'Power against limit',
      description:
        'Mean power of the board as a share of the enforced limit. Unlike watts, it is comparable between models.',
      ...SHARE,
      queries: [{ expr: POWER_OF_LIMIT, legend: DEVICE }],
    },
    {
      kind: 'series',
      title: 'Least temperature margin',
      description: 'Degrees between the hottest sensor of a device and its lowest limit; negative above the limit.',
      ...MARGIN_LEFT,
      marks: true,
      queries: [{ expr: MARGIN, legend: DEVICE }],
    },
    {
      kind: 'series',
      title: 'Video memory used',
      description: 'Used share of the video memory.',
      ...SHARE,
      queries: [{ expr: MEMORY_USED, legend: DEVICE }],
    },
  ],
};
