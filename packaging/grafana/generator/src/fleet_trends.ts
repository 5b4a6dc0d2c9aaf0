// The most important values of the fleet over time. No panel has a line for every GPU: the worst have one each, the rest is in quantiles.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { CHOSEN_JOBS, TO_GPU, TO_JOBS, TO_NODE } from './links';
import type { Query, Row } from './panel';
import { FULLEST, HEALTH, OBSERVED, POWER, POWER_OF_LIMIT, meanShare, ofGpu, perGpu, rate } from './promql';
import { FILLED, HEALTH_WORDS, SHARE, WATTS } from './scales';

export const DEVICE = '{{instance}} GPU {{gpu}}';
const UTILIZATION = perGpu('max', meanShare('gpu_busy_seconds_total'));
const ofAll = [CHOSEN_JOBS];

/** Lowest, 10 %, median, 90 % and highest of all GPUs. */
const spread = (expression: string): Query[] => [
  { expr: `max(${expression})`, legend: 'highest', look: 'most' },
  ...[0.9, 0.5, 0.1].map((share) => ({ expr: `quantile(${share}, ${expression})`, legend: share === 0.5 ? 'median' : `${share * 100} %` })),
  { expr: `min(${expression})`, legend: 'lowest', look: 'most' },
];

export const trends: Row = {
  title: 'Over time',
  panels: [
    {
      kind: 'timeline',
      title: 'Health of the worst',
      description: 'GPUs that were not ok at some time, at most 20 at once; without data all were ok or asleep.',
      ...HEALTH_WORDS,
      queries: [{ expr: `bottomk(20, ${HEALTH} < 3)`, legend: DEVICE }],
    },
    {
      kind: 'heatmap',
      title: 'GPUs by utilisation',
      description: 'Number of GPUs at each utilisation: the true mean of each step.',
      unit: units.PercentUnit,
      cells: { expr: `clamp_max(${UTILIZATION}, 1)`, bands: 10 },
      links: ofAll,
    },
    {
      kind: 'series',
      title: 'Utilisation of each machine',
      crowd: true,
      description: 'Mean of its GPUs: busy seconds divided by observed seconds. The 20 highest.',
      ...SHARE,
      queries: [
        {
          expr: `topk(20, sum by (job, instance) (${rate(ofGpu('gpu_busy_seconds_total'))}) / sum by (job, instance) (${OBSERVED}))`,
          legend: '{{instance}}',
        },
      ],
      links: [TO_NODE, TO_JOBS],
    },
    {
      kind: 'series',
      title: 'Power against limit',
      description:
        'Mean power of the boards as a share of the enforced limit, over all GPUs. Unlike watts, it is comparable between models.',
      ...SHARE,
      queries: spread(POWER_OF_LIMIT),
      links: ofAll,
    },
    {
      kind: 'series',
      title: 'Power of each machine',
      crowd: true,
      description: 'Sum over its GPUs, from their energy counters. The 20 highest.',
      ...WATTS,
      queries: [{ expr: `topk(20, sum by (job, instance) (${POWER}))`, legend: '{{instance}}' }],
      links: [TO_NODE, TO_JOBS],
    },
    {
      kind: 'series',
      title: 'Video memory used',
      crowd: true,
      description: 'Used share of the video memory, of the 10 GPUs that were fullest in the time shown.',
      ...FILLED,
      queries: [{ expr: FULLEST, legend: DEVICE }],
    },
  ],
};

export const FLEET_LINKS = [TO_GPU, TO_JOBS, TO_NODE];
