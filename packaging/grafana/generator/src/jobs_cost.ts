// Cost of the runs, and waste.
import type { Row } from './panel';
import { increase, rate } from './promql';
import { CLOCK_LOST, ENERGY, GOODPUT, IDLE, INPUT_BOUND, JOULES_PER_SAMPLE, RUN, THROTTLED_BY_CAUSE, ofMachine, ofRun } from './promql_jobs';
import { COUNT, JOULES, SHARE, WATTS } from './scales';

const WORKLOAD_ENERGY = 'gpu_workload_energy_joules_total';
const NOBODY = 'kind="unattributed"';
const watts = (matcher: string) =>
  `sum by (job, instance, kind, workload) (${rate(ofMachine(WORKLOAD_ENERGY, matcher))})`;
const OF_ALL = `/ on () group_left () (sum(${rate(ofMachine(WORKLOAD_ENERGY))}) > 0)`;

export const energy: Row = {
  title: 'Energy',
  panels: [
    {
      kind: 'series',
      title: 'Power of each run',
      stacked: true,
      description: "Mean power of the run's share of its GPUs.",
      ...WATTS,
      queries: [{ expr: ENERGY, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Energy per sample',
      description: 'Joules per sample, including the evaluations and checkpoints of the run.',
      ...JOULES,
      queries: [{ expr: JOULES_PER_SAMPLE, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Power of each workload',
      stacked: true,
      description: 'Mean power of all GPUs of the machines, by workload; unattributed power is grey.',
      ...WATTS,
      queries: [
        { expr: watts(NOBODY), legend: 'unattributed ({{instance}})', look: 'rest' },
        { expr: watts('kind!="unattributed"'), legend: '{{kind}} {{workload}} ({{instance}})' },
      ],
    },
    {
      kind: 'series',
      title: 'Share of the energy',
      stacked: true,
      description: 'Share of the energy of all GPUs of the machines; unattributed energy is grey.',
      ...SHARE,
      queries: [
        { expr: `${watts(NOBODY)} ${OF_ALL}`, legend: 'unattributed ({{instance}})', look: 'rest' },
        { expr: `${watts('kind!="unattributed"')} ${OF_ALL}`, legend: '{{kind}} {{workload}} ({{instance}})' },
      ],
    },
  ],
};

export const waste: Row = {
  title: 'Waste',
  panels: [
    {
      kind: 'series',
      title: 'Idle while allocated',
      description: 'Share of the time in which the GPUs that a run holds were idle.',
      ...SHARE,
      queries: [{ expr: IDLE, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Goodput',
      description:
        'Steps of progress times their mean duration: the share of the time spent on steps that were not lost.',
      ...SHARE,
      queries: [{ expr: GOODPUT, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Waiting for data',
      description: "Share of the training steps' time spent in the phase data_loading.",
      ...SHARE,
      queries: [{ expr: INPUT_BOUND, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Time lost by throttling',
      description:
        'Share of the time of its GPUs that each run lost to clocks below the maximum while they were throttled. Steps take longer by about this share if the GPU limits them.',
      ...SHARE,
      queries: [{ expr: CLOCK_LOST, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Throttled by cause',
      description: 'Share of the time in which each cause limited the clocks of the GPUs that a run holds. Causes overlap; do not add them.',
      ...SHARE,
      queries: [{ expr: THROTTLED_BY_CAUSE, legend: `{{cause}}: ${RUN}` }],
    },
    {
      kind: 'series',
      title: 'Restarts and lost steps',
      description: 'Restarts of each run and steps repeated after them, in each step of the graph.',
      ...COUNT,
      queries: [
        { expr: increase(ofRun('ml_run_restarts_total')), legend: `restarts: ${RUN}`, look: 'bars' },
        { expr: increase(ofRun('ml_lost_steps_total')), legend: `lost steps: ${RUN}`, look: 'bars' },
      ],
    },
  ],
};
