// PromQL as the dashboards write it: every selector takes the variables, every counter stands in a rate.

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

/** The time over which the counters of the fast tier are complete. */
export const OBSERVED = rate(ofGpu('gpu_observed_seconds_total', 'tier="fast"'));

/** True mean of a share: its counter of seconds against the observed ones. `labels`: what the counter has beside the device's. */
export const meanShare = (counter: string, ...labels: string[]) =>
  `${rate(ofGpu(counter))} / ignoring(${['tier', ...labels].join(', ')}) group_left ${OBSERVED}`;

/** One series per device: what tables are merged by, and what two families of a device are matched by. */
export const perGpu = (aggregation: 'max' | 'min' | 'sum', expression: string) =>
  `${aggregation} by (job, instance, gpu, uuid, model) (${expression})`;

/** Mean power of each device, whole board. */
export const POWER = rate(ofGpu('gpu_energy_joules_total'));

/** Mean power against the limit that is enforced: comparable between models, as watts are not. */
export const POWER_OF_LIMIT = `${perGpu('max', POWER)} / ${perGpu('max', ofGpu('gpu_power_limit_watts', 'limit="enforced"'))}`;

/** Share of the time in which the cause that held longest held the clocks down. Causes overlap, so they are not added. */
export const THROTTLED = perGpu('max', meanShare('gpu_throttle_seconds_total', 'cause'));

export const MARGIN = perGpu('min', ofGpu('gpu_temperature_margin_celsius'));

const VIDEO_MEMORY = 'memory="vram"';
export const MEMORY_USED = `${perGpu('max', ofGpu('gpu_memory_used_bytes', VIDEO_MEMORY))} / ${perGpu('max', ofGpu('gpu_memory_size_bytes', VIDEO_MEMORY))}`;

/** 0 not read, 1 wants attention, 2 sleeps, 3 fine: the worst sorts first. A family that a vendor lacks changes nothing. */
export const HEALTH = perGpu(
  'max',
  [
    `max without (action) (${ofGpu('gpu_recovery_action', 'action!="none"')}) == 1`,
    `${ofGpu('gpu_row_remap_failed')} == 1`,
    `2 * (${ofGpu('gpu_suspended')} == 1)`,
    `3 * ${ofGpu('gpu_up')}`,
  ].join(' or '),
);
