// The users of each GPU.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { ROW_TO_GPU, ROW_TO_NODE, ROW_TO_RUN, TO_GPU, TO_NODE } from './links';
import type { Column, Row } from './panel';
import { rate } from './promql';
import { ofMachine, ofRun } from './promql_jobs';
import { BYTES, COUNT, LOAD, SHARE, WATTS } from './scales';

const WORKLOAD = 'GPU {{gpu}} of {{instance}}: {{kind}} {{workload}}';
const perWorkload = (expression: string) =>
  `sum by (job, instance, gpu, uuid, kind, workload) (${expression})`;

const device: Column[] = [
  { name: 'job', label: 'job', hidden: true },
  { name: 'Instance', label: 'instance', link: ROW_TO_NODE },
  { name: 'GPU', label: 'gpu', width: 60 },
  { name: 'UUID', label: 'uuid', link: ROW_TO_GPU },
];

const SHARE_NOW = perWorkload(ofMachine('gpu_workload_share_ratio'));
const MEMORY = perWorkload(ofMachine('gpu_workload_memory_used_bytes'));
const POWER = perWorkload(rate(ofMachine('gpu_workload_energy_joules_total')));
const BUSY = perWorkload(rate(ofMachine('gpu_workload_busy_seconds_total')));

const OF_GPU = [TO_GPU, TO_NODE];

export const workloads: Row = {
  title: 'Workloads and their GPUs',
  panels: [
    {
      kind: 'table',
      title: 'GPUs of the runs',
      description: 'GPUs that processes of the chosen runs use now.',
      unit: units.Short,
      width: 8,
      columns: [
        ...device,
        { name: 'User', label: 'user' },
        { name: 'Run', label: 'run', link: ROW_TO_RUN },
        {
          name: 'Holds',
          expr: `max by (job, instance, gpu, uuid, run, user) (${ofRun('ml_run_gpu_info')})`,
          ...COUNT,
          width: 60,
        },
      ],
      sortBy: ['Instance', 'GPU', 'Run'],
      links: [],
    },
    {
      kind: 'table',
      title: 'Workloads of the GPUs',
      description:
        'Units, containers, pods and Slurm jobs on all GPUs of the chosen machines, regardless of the chosen run. Unknown use is unattributed.',
      unit: units.Short,
      width: 16,
      columns: [
        ...device,
        { name: 'Kind', label: 'kind' },
        { name: 'Workload', label: 'workload' },
        { name: 'Share', expr: SHARE_NOW, cell: 'bar', ...LOAD, decimals: 0 },
        { name: 'Power', expr: POWER, ...WATTS, decimals: 0 },
        { name: 'Memory', expr: MEMORY, ...BYTES },
      ],
      sortBy: ['Instance', 'GPU'],
      links: [],
    },
    {
      kind: 'series',
      title: 'Memory by workload',
      description: 'Device memory held by the processes of each workload; the 20 largest.',
      crowd: true,
      ...BYTES,
      queries: [{ expr: `topk(20, ${MEMORY})`, legend: WORKLOAD }],
      links: OF_GPU,
    },
    {
      kind: 'series',
      title: 'Busy time by workload',
      description: 'Share of the time in which work of the workload was on the GPU; processes may overlap. The 20 busiest.',
      crowd: true,
      ...SHARE,
      queries: [{ expr: `topk(20, ${BUSY})`, legend: WORKLOAD }],
      links: OF_GPU,
    },
  ],
};
