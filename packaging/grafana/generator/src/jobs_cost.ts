// What the runs cost, and what of it is wasted.
import type { Row } from './panel';
import { increase, rate } from './promql';
import { ENERGY, GOODPUT, IDLE, INPUT_BOUND, JOULES_PER_SAMPLE, RUN, ofMachine, ofRun } from './promql_jobs';
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
      description: 'Joules that a sample costs, the evaluations and checkpoints of the run included.',
      ...JOULES,
      queries: [{ expr: JOULES_PER_SAMPLE, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Power of each workload',
      stacked: true,
      description: 'Mean power of all GPUs of the machines, by whose it is; grey is what nobody used.',
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
      description: 'Of the energy of all GPUs of the machines; grey is what nobody used.',
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
      description: 'Share of the time in which the GPUs that a run holds had nothing to do.',
      ...SHARE,
      queries: [{ expr: IDLE, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Goodput',
      description:
        'Steps that the run got on by, times their mean duration: the share of the time that was spent on steps which were not lost again.',
      ...SHARE,
      queries: [{ expr: GOODPUT, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Waiting for data',
      description: "Share of the training steps' time that went by in the phase data_loading.",
      ...SHARE,
      queries: [{ expr: INPUT_BOUND, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Restarts and lost steps',
      description: 'In each step of the graph: how often a run began again, and how many of its steps had to be done again.',
      ...COUNT,
      queries: [
        { expr: increase(ofRun('ml_run_restarts_total')), legend: `restarts: ${RUN}`, look: 'bars' },
        { expr: increase(ofRun('ml_lost_steps_total')), legend: `lost steps: ${RUN}`, look: 'bars' },
      ],
    },
  ],
};
