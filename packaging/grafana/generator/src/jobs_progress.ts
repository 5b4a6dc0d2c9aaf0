// Progress of the runs: throughput, steps, evaluations, memory, inference.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Panel, Row } from './panel';
import { increase, rate } from './promql';
import { MFU, OFU, RUN, SAMPLES, SAMPLES_PER_GPU, TOKENS, ofRun, quantile } from './promql_jobs';
import { BYTES, COUNT, PER_SECOND, SECONDS, SHARE } from './scales';

export const throughput: Row = {
  title: 'Throughput',
  panels: [
    {
      kind: 'series',
      title: 'Samples per second',
      description: 'Sum over all processes of the run on the machine, without evaluations.',
      ...PER_SECOND,
      queries: [{ expr: SAMPLES, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Samples per second and GPU',
      description: 'Samples per second divided by the number of GPUs that the run holds.',
      ...PER_SECOND,
      queries: [{ expr: SAMPLES_PER_GPU, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Tokens per second',
      description: 'By kind (input, output, train), without evaluations.',
      ...PER_SECOND,
      queries: [{ expr: TOKENS, legend: `{{kind}}: ${RUN}` }],
    },
    {
      kind: 'series',
      title: 'Model FLOPs utilisation',
      description:
        'MFU: model FLOPs of any dtype, as the job reports them, as a share of the bf16 peak of the GPUs that the run holds. OFU: the share of the tensor cores\' peak that the GPUs count. A shared GPU counts as a whole.',
      ...SHARE,
      queries: [
        { expr: MFU, legend: `MFU: ${RUN}` },
        { expr: OFU, legend: `OFU: ${RUN}` },
      ],
    },
  ],
};

/** The median, 95 % and 99 %, with the traces of single durations if Prometheus stores exemplars. */
const quantiles = (title: string, description: string, histogram: string, ...matchers: string[]): Panel => ({
  kind: 'series',
  title,
  description: `${description} The median, 95 % and 99 %, within 10 %.`,
  ...SECONDS,
  queries: [0.5, 0.95, 0.99].map((share) => ({
    expr: quantile(share, histogram, ...matchers),
    legend: `${share * 100} %: ${RUN}`,
    exemplars: share === 0.99,
  })),
});

/** The powers of 2, one bound of eight: more would be too thin to see in a heatmap. */
const POWERS = Array.from({ length: 22 }, (_, power) => 2 ** (power - 11));
const EACH_POWER = `le=~"${POWERS.join('|').replaceAll('.', '[.]')}|[0-9]+[.]0|[+]Inf"`;
const PHASE_SECONDS = rate(ofRun('ml_phase_seconds_total'));

export const steps: Row = {
  title: 'Steps',
  panels: [
    quantiles('Duration of a step', 'Duration of training steps.', 'ml_step_duration_seconds', 'split="train"'),
    {
      kind: 'heatmap',
      title: 'Durations of steps',
      description: 'Training steps of all chosen runs per second, by duration.',
      unit: units.Seconds,
      buckets: `sum by (le) (${rate(ofRun('ml_step_duration_seconds_bucket', 'split="train"', EACH_POWER))})`,
    },
    {
      kind: 'series',
      title: 'Phases',
      stacked: true,
      description: 'Shares of the total phase time reported by the processes of the chosen runs.',
      ...SHARE,
      queries: [
        {
          expr: `sum by (phase) (${PHASE_SECONDS}) / on () group_left () (sum(${PHASE_SECONDS}) > 0)`,
          legend: '{{phase}}',
        },
      ],
    },
    {
      kind: 'series',
      title: 'Step',
      description: 'Current step number of the run. It falls if a restart lost steps.',
      ...COUNT,
      queries: [{ expr: ofRun('ml_step'), legend: RUN, look: 'step' }],
    },
  ],
};

export const evaluations: Row = {
  title: 'Evaluations',
  panels: [
    {
      kind: 'series',
      title: 'Evaluation against target',
      description: 'Last and best results; the target is dashed.',
      unit: units.Short,
      queries: [
        { expr: ofRun('ml_eval_value'), legend: `{{metric}}: ${RUN}`, look: 'step' },
        { expr: ofRun('ml_eval_best_value'), legend: `{{metric}}, best: ${RUN}`, look: 'step' },
        { expr: ofRun('ml_target_value'), legend: `{{metric}}, target: ${RUN}`, look: 'limit' },
      ],
    },
    {
      kind: 'series',
      title: 'Loss',
      description: 'Last reported loss.',
      unit: units.Short,
      queries: [{ expr: ofRun('ml_loss'), legend: `{{split}}: ${RUN}` }],
    },
  ],
};

export const memory: Row = {
  title: 'Memory',
  panels: [
    {
      kind: 'series',
      title: "Memory of the framework's allocator",
      description:
        "Device memory summed over the run's live processes. Reserved memory is taken from the device, also if no tensor uses it; the peak is the highest allocated.",
      ...BYTES,
      queries: [{ expr: ofRun('ml_allocator_memory_bytes'), legend: `{{state}}: ${RUN}` }],
    },
    {
      kind: 'series',
      title: 'Out of memory',
      description: 'Allocations of device memory that failed, in each step of the graph.',
      ...COUNT,
      queries: [{ expr: increase(ofRun('ml_out_of_memory_errors_total')), legend: RUN, look: 'bars' }],
    },
  ],
};

export const inference: Row = {
  title: 'Inference',
  panels: [
    { ...quantiles('Duration of a request', 'Time from a request to its end.', 'ml_inference_duration_seconds'), width: 8 },
    {
      ...quantiles('Time to the first token', 'Time from a request to its first token.', 'ml_time_to_first_token_seconds'),
      width: 8,
    },
    {
      ...quantiles('Time between tokens', 'Time between consecutive tokens of an answer.', 'ml_inter_token_latency_seconds'),
      width: 8,
    },
  ],
};
