// Runs and workloads: who gets what done with which GPU, and what it costs.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { jobChoices } from './choices';
import { energy, waste } from './jobs_cost';
import { evaluations, inference, steps, throughput } from './jobs_progress';
import { workloads } from './jobs_workloads';
import type { Board, Column, Row } from './panel';
import { GPUS, JOULES_PER_SAMPLE, MFU, SAMPLES, ofRun, perRun } from './promql_jobs';
import { COUNT, JOULES, LOAD, PER_SECOND, SECONDS } from './scales';

const ONE_RUN =
  '/d/gpumeter-jobs?${datasource:queryparam}&var-job=${__data.fields.job}&var-instance=${__data.fields.Instance}&var-user=${__data.fields.User}&var-run=${__data.fields.Run}&${__url_time_range}';

const columns: Column[] = [
  { name: 'job', label: 'job', hidden: true },
  { name: 'Instance', label: 'instance' },
  { name: 'User', label: 'user' },
  { name: 'Run', label: 'run', link: { title: 'This run alone', url: ONE_RUN } },
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

const runs: Row = {
  title: 'Runs',
  panels: [
    {
      kind: 'table',
      title: 'Every run',
      description:
        'A run is what one user calls so on one machine. Rates are means over the last rate interval. MFU: model FLOPs against the bf16 peak of the GPUs that the run holds. An empty cell was not told, or is not reached yet.',
      unit: units.Short,
      columns,
      sortBy: ['Instance', 'User', 'Run'],
    },
  ],
};

export const jobs: Board = {
  uid: 'gpumeter-jobs',
  title: 'GPU jobs',
  description: 'What runs and workloads do with the GPUs, and what it costs.',
  rows: [runs, throughput, steps, evaluations, energy, waste, inference, workloads],
  choices: jobChoices,
  single: false,
};
