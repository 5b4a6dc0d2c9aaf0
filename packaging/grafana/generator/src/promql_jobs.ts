// PromQL of runs and workloads. A run belongs to one user on one machine.
import { HOST, ofDaemon, rate } from './promql';

const OF_RUN = [...HOST, 'user=~"$user"', 'run=~"$run"'];

/** Series of the selected runs. */
export const ofRun = (metric: string, ...matchers: string[]) => `${metric}{${[...OF_RUN, ...matchers].join(', ')}}`;
/** Series of the selected machines' workloads and devices, regardless of the chosen run. */
export const ofMachine = ofDaemon;

export const RUN = '{{run}} ({{user}}, {{instance}})';

/** One series per run: the labels by which tables are merged and families are matched. */
export const perRun = (aggregation: 'avg' | 'max' | 'min' | 'sum' | 'count', expression: string) =>
  `${aggregation} by (job, instance, run, user) (${expression})`;

/** Evaluations do not count as work of a run. */
const WORK = 'split!="eval"';
export const SAMPLES = perRun('sum', rate(ofRun('ml_samples_total', WORK)));
export const TOKENS = `sum by (job, instance, run, user, kind) (${rate(ofRun('ml_tokens_total', WORK))})`;

const HELD = `max by (job, instance, run, user, uuid) (${ofRun('ml_run_gpu_info')})`;
export const GPUS = perRun('count', HELD);
export const SAMPLES_PER_GPU = `${SAMPLES} / ${GPUS}`;

const PEAK = `max by (job, instance, uuid) (${ofMachine('gpu_peak_flops', 'dtype="bf16"')})`;
/** Model FLOPs of any dtype as a share of the bf16 peak of the GPUs that the run holds. */
export const MFU = `(${perRun('sum', rate(ofRun('ml_model_flops_total')))} > 0) / ${perRun('sum', `${HELD} * on (job, instance, uuid) group_left () ${PEAK}`)}`;
/** Used share of the tensor cores' peak, as the GPUs count it. */
export const OFU = perRun('avg', `${HELD} * on (job, instance, uuid) group_left () max by (job, instance, uuid) (${rate(ofMachine('gpu_tensor_peak_seconds_total'))})`);

export const ENERGY = perRun('sum', rate(ofRun('ml_energy_joules_total')));
export const JOULES_PER_SAMPLE = `(${ENERGY} > 0) / (${SAMPLES} > 0)`;

/** Of the training steps, by a classic or a native histogram. */
const ofSteps = (part: 'sum' | 'count') =>
  perRun('sum', `${rate(ofRun(`ml_step_duration_seconds_${part}`, 'split="train"'))} or histogram_${part}(${rate(ofRun('ml_step_duration_seconds', 'split="train"'))})`);
const STEP_SECONDS = ofSteps('sum');
const STEP_COUNT = ofSteps('count');
/** The processes of a run step together, so their number cancels out. The rule in jobs.yml has a longer window. */
export const GOODPUT = `clamp_min(${perRun('max', `deriv(${ofRun('ml_step')}[$__rate_interval])`)}, 0) * (${STEP_SECONDS} > 0) / (${STEP_COUNT} > 0)`;
export const INPUT_BOUND = `${perRun('sum', rate(ofRun('ml_phase_seconds_total', 'phase="data_loading"')))} / (${STEP_SECONDS} > 0)`;

/** Idle share of the time for each GPU held. The daemon counts the time over all of the run's GPUs. */
export const IDLE = `${perRun('sum', rate(ofRun('ml_gpu_idle_allocated_seconds_total')))} / ${GPUS}`;

/** Share of the time in which each cause limited the clocks of the GPUs held. */
export const THROTTLED_BY_CAUSE = `sum by (job, instance, run, user, cause) (${rate(ofRun('ml_throttled_seconds_total'))}) / on (job, instance, run, user) group_left () ${GPUS}`;
/** Share of the GPUs' time that throttling cost: the missing share of the clock while they were throttled. */
export const CLOCK_LOST = `${perRun('sum', rate(ofRun('ml_clock_lost_seconds_total')))} / ${GPUS}`;

/** The quantile `share` of the durations in the step, by a classic or a native histogram. */
export const quantile = (share: number, histogram: string, ...matchers: string[]) =>
  `histogram_quantile(${share}, sum by (job, instance, run, user, le) (${rate(ofRun(`${histogram}_bucket`, ...matchers))})) or ` +
  `histogram_quantile(${share}, ${perRun('sum', rate(ofRun(histogram, ...matchers)))})`;
