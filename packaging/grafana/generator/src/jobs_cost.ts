// Cost of the runs, waste, and money.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { CHOSEN_FLEET } from './links';
import type { Panel, Row, Scale } from './panel';
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

/** Money has the currency of the prices, and Grafana no base unit of it. */
const AMOUNT: Scale = { unit: units.Short, decimals: 2, min: 0 };
const NEEDS = 'Needs the records of costs (docs/cost.md).';

/** Amounts of the time shown: the records are amounts an hour. */
const bill = (label: string, name: string, description: string): Panel => {
  const sum = (record: string) => `sum by (${label}) (sum_over_time(${ofMachine(`${label}:${record}:per_hour`)}[$__range:1m])) / 60`;
  return {
    kind: 'table',
    title: `Cost by ${name.toLowerCase()}`,
    description: `${description} Energy in kWh of the GPUs, times the PUE; CO2 in kg; money for energy and GPU hours, and the part of it for GPUs that were given and idle. For the time shown. ${NEEDS}`,
    unit: units.Short,
    width: 8,
    columns: [
      { name, label },
      { name: 'kWh', expr: sum('gpu_workload_energy_kilowatt_hours'), ...AMOUNT },
      { name: 'kg CO2', expr: `${sum('gpu_workload_co2_grams')} / 1000`, ...AMOUNT },
      { name: 'Money', expr: sum('gpu_workload_cost'), ...AMOUNT },
      { name: 'Idle', expr: sum('gpu_allocated_idle_cost'), ...AMOUNT },
    ],
    sortBy: ['-Money'],
    links: [CHOSEN_FLEET],
  };
};

const byUser = (record: string) => [
  { expr: `sum by (user) (${ofMachine(`user:${record}`, 'user=""')})`, legend: 'nobody', look: 'rest' as const },
  { expr: `sum by (user) (${ofMachine(`user:${record}`, 'user!=""')})`, legend: '{{user}}' },
];

export const cost: Row = {
  title: 'Cost',
  panels: [
    bill('user', 'User', 'The row without a user has GPUs that nobody uses, and workloads without a known user.'),
    bill('slurm_account', 'Account', 'Accounts of Slurm.'),
    bill('k8s_namespace', 'Namespace', 'Namespaces of Kubernetes.'),
    {
      kind: 'series',
      title: 'Money an hour by user',
      stacked: true,
      description: `Money an hour for energy and GPU time; that without a known user is grey. ${NEEDS}`,
      ...AMOUNT,
      queries: byUser('gpu_workload_cost:per_hour'),
      links: [CHOSEN_FLEET],
    },
    {
      kind: 'series',
      title: 'Idle money an hour',
      stacked: true,
      description: `Money an hour for GPUs that nobody uses and nobody was given, by machine, and for GPUs that were given and idle, by user. ${NEEDS}`,
      ...AMOUNT,
      queries: [
        { expr: `sum by (instance) (${ofMachine('instance:gpu_idle_cost:per_hour')})`, legend: 'nobody ({{instance}})' },
        { expr: `sum by (user) (${ofMachine('user:gpu_allocated_idle_cost:per_hour')})`, legend: 'given to {{user}}' },
      ],
      links: [CHOSEN_FLEET],
    },
    {
      kind: 'series',
      title: 'CO2 an hour by user',
      stacked: true,
      description: `Grams of CO2 an hour of the energy; that without a known user is grey. ${NEEDS}`,
      ...AMOUNT,
      queries: byUser('gpu_workload_co2_grams:per_hour'),
      links: [CHOSEN_FLEET],
    },
    {
      kind: 'series',
      title: 'Money per million tokens',
      description: `Money for energy and GPU time per million tokens of each run, by kind. Each kind has all of the money. ${NEEDS}`,
      ...AMOUNT,
      queries: [
        {
          expr: `sum by (job, instance, run, user, kind) (${ofRun('run_kind:ml_cost:per_million_tokens')})`,
          legend: `{{kind}}: ${RUN}`,
        },
      ],
    },
  ],
};
