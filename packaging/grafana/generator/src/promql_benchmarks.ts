// PromQL of the results of benchmarks.
import { ofGpu, perGpu } from './promql';

/** The highest of several libraries. */
export const measured = (metric: string, ...matchers: string[]) => perGpu('max', ofGpu(metric, ...matchers));

export const UP = ofGpu('gpu_up');
export const BENCHMARK_FAILED = measured('gpu_benchmark_failed');
export const BENCHMARK_TIME = measured('gpu_benchmark_timestamp_seconds');

const BF16 = 'dtype="bf16"';
/** The standard page has the peak of bf16 only. */
export const BF16_OF_PEAK = `${measured('gpu_benchmark_flops', BF16)} / ${measured('gpu_peak_flops', BF16)}`;

/** What the alert GpuSlowerThanPeers reads: its medians are over all machines, not only over those chosen. */
export const OF_PEERS = perGpu('min', ofGpu('gpu:gpu_benchmark_peers:ratio_min'));
