// Runs and workloads: their progress, their GPUs and their cost.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { jobChoices } from './choices';
import { cost, energy, waste } from './jobs_cost';
import { evaluations, inference, memory, steps, throughput } from './jobs_progress';
import { workloads } from './jobs_workloads';
import { ROW_TO_NODE, ROW_TO_RUN, TO_NODE, TO_RUN } from './links';
import type { Board, Column, Row } from './panel';
import { GPUS, JOULES_PER_SAMPLE, MFU, SAMPLES, ofRun, perRun } from './promql_jobs';
import { COUNT, JOULES, LOAD, PER_SECOND, SECONDS } from './scales';

const columns: Column[] = [
  { name: 'job', label: 'job', hidden: true },
  { name: 'Instance', label: 'instance', link: ROW_TO_NODE },
  { name: 'User', label: 'user' },
  { name: 'Run', label: 'run', link: ROW_TO_RUN },
  {
    name: 'Last update',
    expr: `1000 * ${perRun('max', ofRun('ml_last_update_timestamp_seconds'))}`,
    unit: units.DateTimeFromNow,
  },
  { name: 'Step', expr: perRun('max', ofRun('ml_step')), ...COUNT },
  { name: 'Samples per second', expr: SAMPLES, ...PER_SECOND },
  { name: 'MFU', expr: MFU, cell: 'bar', ...LOAD },
  { name: 'Energy per sample', expr: JOULES_PER_SAMPLE, ...JOULES },
  { name: 'Time to solution', expr: perRun('min', ofRun('ml_time_to_solution_seconds')), ...SECONDS },
  { name: 'GPUs', expr: GPUS, ...COUNT, width: 70 },
];

/** Labels of ml_run_info, which is 1 for every run that reports facts, and their columns. */
const FACTS: [label: string, name: string][] = [
  ['framework', 'Framework'],
  ['version', 'Version'],
  ['model', 'Model'],
  ['precision', 'Precision'],
  ['sharding', 'Sharding'],
  ['data_parallel', 'Data parallel'],
  ['tensor_parallel', 'Tensor parallel'],
  ['pipeline_parallel', 'Pipeline parallel'],
];

const runs: Row = {
  title: 'Runs',
  panels: [
    {
      kind: 'table',
      title: 'Every run',
      description:
        'A run belongs to one user on one machine. Rates are means over the last rate interval. MFU: model FLOPs as a share of the bf16 peak of the GPUs that the run holds. Cells are empty if the job does not report the value or has not reached it yet.',
      unit: units.Short,
      columns,
      sortBy: ['Instance', 'User', 'Run'],
      links: [],
    },
  ],
};

const facts: Row = {
  title: 'Facts',
  panels: [
    {
      kind: 'table',
      title: 'Facts',
      description:
        'What each run reports about itself: precision of the matrix multiplications, and into how many replicas, parts of a layer and stages the model is split. Cells are empty if the job does not report the value.',
      unit: units.Short,
      facts: [ofRun('ml_run_info')],
      columns: [
        { name: 'job', label: 'job', hidden: true },
        { name: 'Instance', label: 'instance', link: ROW_TO_NODE },
        { name: 'User', label: 'user' },
        { name: 'Run', label: 'run', link: ROW_TO_RUN },
        ...FACTS.map(([label, name]) => ({ name, label })),
      ],
      sortBy: ['Instance', 'User', 'Run'],
      links: [],
    },
  ],
};

/** Many runs: their legends are sorted. */
const sorted = (row: Row): Row => ({
  ...row,
  panels: row.panels.map((panel) => (panel.kind === 'series' && (panel.width ?? 12) >= 12 ? { crowd: true, ...panel } : panel)),
});

export const jobs: Board = {
  uid: 'gpumeter-jobs',
  title: 'GPU jobs',
  description: 'Progress and cost of runs and workloads on the GPUs.',
  rows: [runs, throughput, steps, evaluations, memory, energy, waste, cost, inference, workloads, facts].map(sorted),
  choices: jobChoices,
  links: [TO_RUN, TO_NODE],
  single: false,
};
