// PromQL of the dashboards: every selector uses the variables, every counter is in a rate.

/** A label that the targets do not have matches `.*`, the cluster and rack of "All". */
export const HOST = ['job=~"$job"', 'instance=~"$instance"', '$cluster_label=~"$cluster"', '$rack_label=~"$rack"'];
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

/** Of the hottest sensor. */
export const TEMPERATURE = perGpu('max', ofGpu('gpu_temperature_celsius'));
export const MARGIN = perGpu('min', ofGpu('gpu_temperature_margin_celsius'));

/** Video memory, or the host's memory if the GPU has none of its own; a device has one of the two. */
export const VIDEO_MEMORY = 'memory=~"vram|unified"';
export const MEMORY_USED = `${perGpu('max', ofGpu('gpu_memory_used_bytes', VIDEO_MEMORY))} / ${perGpu('max', ofGpu('gpu_memory_size_bytes', VIDEO_MEMORY))}`;

const inState = (state: string) => `(${ofGpu('gpu_health', `state="${state}"`)} == 1)`;

/** 0 failed, 1 degraded, 2 unknown, 3 asleep, 4 ok: the worst sorts first. A family that a vendor lacks has no effect. */
export const HEALTH = perGpu(
  'min',
  [
    `0 * ${inState('failed')}`,
    inState('degraded'),
    `2 * ${inState('unknown')}`,
    `3 * (${ofGpu('gpu_suspended')} == 1)`,
    `4 * ${inState('ok')}`,
  ].join(' or '),
);

/** Devices in a state; 0 if there are devices, but none in the state. */
export const countOf = (state: string) => `sum(${ofGpu('gpu_health', `state="${state}"`)})`;

const ofSeverity = (severity: string) => ofGpu('gpu_health_reason', `severity="${severity}"`);
/** The reasons that hold now: 0 of failed GPUs, 1 of degraded ones. */
export const REASONS = `max by (job, instance, gpu, uuid, model, reason, action) (0 * ${ofSeverity('failed')} or ${ofSeverity('degraded')})`;
/** How many hold. */
export const REASON_COUNT = perGpu('sum', ofGpu('gpu_health_reason'));

/** Uncorrected memory errors since the driver was loaded, as the driver counts them. */
export const UNCORRECTED = perGpu('sum', ofGpu('gpu_memory_errors_total', 'severity="uncorrected"'));

const LINKS_UP = perGpu('sum', ofGpu('gpu_interconnect_links_up'));
const LINKS = perGpu('sum', ofGpu('gpu_interconnect_links'));
export const LINKS_DOWN = `${LINKS} - ${LINKS_UP}`;
const asLabel = (label: string, expression: string) =>
  `count_values by (job, instance, gpu, uuid, model) ("${label}", ${expression})`;
/** Used for its label `links`, such as `9 of 18`. */
export const LINKS_OF_TOTAL = `label_join(${asLabel('links_up', LINKS_UP)} * on (job, instance, gpu, uuid, model) group_left (links_total) ${asLabel('links_total', LINKS)}, "links", " of ", "links_up", "links_total")`;

const BY_GPU = '(job, instance, gpu, uuid, model)';
const XIDS_OF_HOUR = `max by (job, instance, gpu, uuid, model, xid) (${ofGpu('gpu_xid_last_timestamp_seconds')}) > time() - 3600`;
const LAST_XID = `topk by ${BY_GPU} (1, ${XIDS_OF_HOUR})`;
const XID_BEFORE = `topk by ${BY_GPU} (1, (${XIDS_OF_HOUR}) unless ${LAST_XID})`;
const LAST_TWO = `${LAST_XID} * on ${BY_GPU} group_left (xid_before) label_replace(${XID_BEFORE}, "xid_before", "$1", "xid", "(.+)")`;
/** Used for its label `xids`: the driver's last two error codes of the hour, or the only one. */
export const LAST_XIDS = `label_join(${LAST_TWO}, "xids", ", ", "xid", "xid_before") or label_replace(${LAST_XID}, "xids", "$1", "xid", "(.+)") unless on ${BY_GPU} ${XID_BEFORE}`;

const ONE_HOLDER = 'topk by (job, instance, gpu, uuid) (1, ';
const RUN_HOLDS = ofGpu('ml_run_gpu_info');
const BY_RUN = `label_join(${ONE_HOLDER}max by (job, instance, gpu, uuid, run, user) (${RUN_HOLDS})), "holder", " of ", "run", "user")`;
const BY_WORKLOAD = `label_join(${ONE_HOLDER}max by (job, instance, gpu, uuid, kind, workload) (${ofGpu('gpu_workload_share_ratio', 'kind!="unattributed"')}) > 0), "holder", " ", "kind", "workload")`;
/** Used for its label `holder`: a run and its user, otherwise the workload with the largest share. */
export const HOLDER = `${BY_RUN} or ${BY_WORKLOAD} unless on (job, instance, gpu, uuid) ${RUN_HOLDS}`;

/** The same for the GPUs that have a reason, so that the others add no rows to a table of reasons. */
export const HOLDER_WITH_REASON = `(${HOLDER}) and on (job, instance, gpu, uuid) ${ofGpu('gpu_health_reason')}`;

const wholeRange = (over: string, selector: string) => `${over}(${selector}[$__range] @ end())`;
/** The devices that are the worst over the whole range, so that each has an unbroken line. */
export const MOST_THROTTLED = `${THROTTLED} and topk(10, ${perGpu('max', wholeRange('increase', ofGpu('gpu_throttle_seconds_total')))} > 0)`;
export const LEAST_MARGINS = `${MARGIN} and bottomk(10, ${perGpu('min', wholeRange('min_over_time', ofGpu('gpu_temperature_margin_celsius')))})`;
const ofRange = (metric: string) => perGpu('max', wholeRange('max_over_time', ofGpu(metric, VIDEO_MEMORY)));
export const FULLEST = `${MEMORY_USED} and topk(10, ${ofRange('gpu_memory_used_bytes')} / ${ofRange('gpu_memory_size_bytes')})`;
