// Measured rates of the GPUs, next to their peak and to others of their model.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { CHOSEN_JOBS, ROW_TO_GPU, ROW_TO_NODE } from './links';
import type { Column, Row } from './panel';
import { BENCHMARK_FAILED, BENCHMARK_TIME, BF16_OF_PEAK, OF_PEERS, UP, measured } from './promql_benchmarks';
import { BYTES_PER_SECOND, COUNT, FEW_EXPECTED, FLOPS, NONE_EXPECTED, NONE_IS_GOOD, OF_PEAK, OF_PEERS_CELL, SECONDS, SLOW } from './scales';

const DTYPES = ['bf16', 'fp16', 'fp8', 'tf32', 'fp32', 'fp64', 'int8'];

const columns: Column[] = [
  { name: 'job', label: 'job', hidden: true },
  { name: 'Instance', label: 'instance', width: 180, link: ROW_TO_NODE },
  { name: 'GPU', label: 'gpu', width: 60, link: ROW_TO_GPU },
  { name: 'Failed', expr: BENCHMARK_FAILED, cell: 'colour', ...NONE_EXPECTED, width: 70 },
  { name: 'Of its model', expr: OF_PEERS, cell: 'colour', ...OF_PEERS_CELL, decimals: 0, width: 100 },
  { name: 'bf16 of peak', expr: BF16_OF_PEAK, cell: 'bar', ...OF_PEAK, decimals: 0 },
  ...DTYPES.map((dtype) => ({ name: dtype, expr: measured('gpu_benchmark_flops', `dtype="${dtype}"`), ...FLOPS, width: 105 })),
  { name: 'Memory, triad', expr: measured('gpu_benchmark_memory_bandwidth_bytes_per_second', 'operation="triad"'), ...BYTES_PER_SECOND },
  { name: 'Last benchmark', expr: `1000 * ${BENCHMARK_TIME}`, unit: units.DateTimeFromNow },
  { name: 'Model', label: 'model' },
];

export const benchmarks: Row = {
  title: 'Benchmarks',
  panels: [
    {
      kind: 'stat',
      title: 'Failed benchmarks',
      description: 'GPUs that computed a wrong result, or could not complete their last benchmark.',
      width: 6,
      ...NONE_IS_GOOD,
      queries: [{ expr: `sum(${BENCHMARK_FAILED})`, legend: 'failed' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Slow cards',
      description:
        'GPUs below the limit of the alert GpuSlowerThanPeers: a share of the median of their model. Needs the recording rules (rules.yml) and at least three GPUs of a model.',
      width: 6,
      ...FEW_EXPECTED,
      queries: [{ expr: `sum(${OF_PEERS} < bool ${SLOW})`, legend: 'slow' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Without a benchmark',
      description: 'Devices without any result. gpumeter-benchmark measures GPUs that nobody uses.',
      width: 6,
      ...COUNT,
      queries: [{ expr: `count(${UP}) - (count(${BENCHMARK_TIME}) or 0 * count(${UP}))`, legend: 'without' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'stat',
      title: 'Oldest benchmark',
      description: 'Time since the last benchmark of the GPU that waits the longest. The timer measures once a day.',
      width: 6,
      ...SECONDS,
      queries: [{ expr: `time() - min(${BENCHMARK_TIME})`, legend: 'oldest' }],
      links: [CHOSEN_JOBS],
    },
    {
      kind: 'table',
      title: 'Measured rates',
      description:
        'The highest rate of each data type over all libraries, and the memory bandwidth by triad, from the last benchmark. The peak is that of the data sheet, which no library reaches. Of its model: the lowest ratio of any rate to the median of the model, from rules.yml. Cells are empty if the value was not measured.',
      height: 10,
      unit: units.Short,
      columns,
      sortBy: ['-Failed', 'Of its model', 'Instance', 'GPU'],
      links: [],
    },
  ],
};
