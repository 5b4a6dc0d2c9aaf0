// Results of the device's benchmarks over time.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Row } from './panel';
import { ofGpu, perGpu } from './promql';
import { BYTES_PER_SECOND, FLOPS } from './scales';

const RATES = ofGpu('gpu_benchmark_flops');

export const benchmarks: Row = {
  title: 'Benchmarks of GPU $gpu of $instance',
  panels: [
    {
      kind: 'series',
      width: 8,
      title: 'Matrix multiplication',
      description:
        'Measured rate by data type and library, and the peak of bf16 by the data sheet, which no library reaches. Compare rates of one library only.',
      ...FLOPS,
      queries: [
        { expr: RATES, legend: '{{dtype}} {{backend}}', look: 'step' },
        {
          expr: `${perGpu('max', ofGpu('gpu_peak_flops', 'dtype="bf16"'))} and on (job, instance, uuid) ${RATES}`,
          legend: 'bf16, peak',
          look: 'most',
        },
      ],
    },
    {
      kind: 'series',
      width: 8,
      title: 'Memory and transfers',
      description: 'Measured bandwidth of the memory by operation, read and written bytes added, and of transfers by direction.',
      ...BYTES_PER_SECOND,
      queries: [
        { expr: ofGpu('gpu_benchmark_memory_bandwidth_bytes_per_second'), legend: 'memory, {{operation}}', look: 'step' },
        { expr: ofGpu('gpu_benchmark_transfer_bytes_per_second'), legend: '{{direction}}', look: 'step' },
      ],
    },
    {
      kind: 'series',
      width: 8,
      title: 'Other results',
      description: 'Results of imported benchmarks that have no metric of their own (MLPerf, AI-Benchmark, ...), each in its own unit.',
      unit: units.Short,
      queries: [{ expr: ofGpu('gpu_benchmark_result'), legend: '{{suite}} {{test}}, {{unit}}', look: 'step' }],
    },
  ],
};
