// PromQL of the dashboards: every selector uses the variables, every counter is in a rate.

export const HOST = ['job=~"$job"', 'instance=~"$instance"'];
const DEVICE = [...HOST, 'gpu=~"$gpu"'];

/** Series of the daemon itself, which have no `gpu` label. */
export const ofDaemon = (metric: string, ...matchers: string[]) => `${metric}{${[...HOST, ...matchers].join(', ')}}`;

/** Series of the selected devices. */
export const ofGpu = (metric: string, ...matchers: string[]) => `${metric}{${[...DEVICE, ...matchers].join(', ')}}`;

export const rate = (selector: string) => `rate(${selector}[$__rate_interval])`;
export const increase = (selector: string) => `increase(${selector}[$__rate_interval])`;
export const lowest = (selector: string) => `min_over_time(${selector}[$__rate_interval])`;
export const highest = (selector: string) => `max_over_time(${selector}[$__rate_interval])`;

/** The observed time of the fast tier. */
export const OBSERVED = rate(ofGpu('gpu_observed_seconds_total', 'tier="fast"'));

/** True mean of a share: its seconds divided by the observed seconds. `labels`: the counter's labels in addition to the device's. */
export const meanShare = (counter: string, ...labels: string[]) =>
  `${rate(ofGpu(counter))} / ignoring(${['tier', ...labels].join(', ')}) group_left ${OBSERVED}`;

/** One series per device: the labels by which tables are merged and families are matched. */
export const perGpu = (aggregation: 'max' | 'min' | 'sum', expression: string) =>
  `${aggregation} by (job, instance, gpu, uuid, model) (${expression})`;

/** Mean power of each device, whole board. */
export const POWER = rate(ofGpu('gpu_energy_joules_total'));

/** Mean power as a share of the enforced limit. Unlike watts, it is comparable between models. */
export const POWER_OF_LIMIT = `${perGpu('max', POWER)} / ${perGpu('max', ofGpu('gpu_power_limit_watts', 'limit="enforced"'))}`;

/** Share of the time in which the longest cause limited the clocks. Causes overlap, so they are not added. */
export const THROTTLED = perGpu('max', meanShare('gpu_throttle_seconds_total', 'cause'));

export const MARGIN = perGpu('min', ofGpu('gpu_temperature_margin_celsius'));

const VIDEO_MEMORY = 'memory="vram"';
export const MEMORY_USED = `${perGpu('max', ofGpu('gpu_memory_used_bytes', VIDEO_MEMORY))} / ${perGpu('max', ofGpu('gpu_memory_size_bytes', VIDEO_MEMORY))}`;

/** 0 not read, 1 needs attention, 2 asleep, 3 fine: the worst sorts first. A family that a vendor lacks has no effect. */
export const HEALTH = perGpu(
  'max',
  [
    `max without (action) (${ofGpu('gpu_recovery_action', 'action!="none"')}) == 1`,
    `${ofGpu('gpu_row_remap_failed')} == 1`,
    `2 * (${ofGpu('gpu_suspended')} == 1)`,
    `3 * ${ofGpu('gpu_up')}`,
  ].join(' or '),
);
