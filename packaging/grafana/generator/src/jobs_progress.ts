// How far the runs get: work, steps, evaluations, answers.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Panel, Row } from './panel';
import { rate } from './promql';
import { MFU, RUN, SAMPLES, SAMPLES_PER_GPU, TOKENS, ofRun, quantile } from './promql_jobs';
import { COUNT, PER_SECOND, SECONDS, SHARE } from './scales';

export const throughput: Row = {
  title: 'Throughput',
  panels: [
    {
      kind: 'series',
      title: 'Samples per second',
      description: 'Over all processes of the run on the machine, without those of evaluations.',
      ...PER_SECOND,
      queries: [{ expr: SAMPLES, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Samples per second and GPU',
      description: 'The same for each GPU that the run holds.',
      ...PER_SECOND,
      queries: [{ expr: SAMPLES_PER_GPU, legend: RUN }],
    },
    {
      kind: 'series',
      title: 'Tokens per second',
      description: 'By kind: read, written, trained on. Without those of evaluations.',
      ...PER_SECOND,
      queries: [{ expr: TOKENS, legend: `{{kind}}: ${RUN}` }],
    },
    {
      kind: 'series',
      title: 'Model FLOPs utilisation',
      description:
        'Model FLOPs, of whatever dtype, against the bf16 peak of the GPUs that the run holds, each of them whole, also where it is shared.',
      ...SHARE,
      queries: [{ expr: MFU, legend: RUN }],
    },
  ],
};

/** Half, nearly all, all but the worst. */
const quantiles = (title: string, description: string, histogram: string, ...matchers: string[]): Panel => ({
  kind: 'series',
  title,
  description: `${description} The median, 95 % and 99 %, within 10 %.`,
  ...SECONDS,
  queries: [0.5, 0.95, 0.99].map((share) => ({
    expr: quantile(share, histogram, ...matchers),
    legend: `${share * 100} %: ${RUN}`,
  })),
});

const PHASE_SECONDS = rate(ofRun('ml_phase_seconds_total'));

export const steps: Row = {
  title: 'Steps',
  panels: [
    quantiles('Duration of a step', 'Of training steps.', 'ml_step_duration_seconds', 'split="train"'),
    {
      kind: 'heatmap',
      title: 'Durations of steps',
      description: 'Training steps of all chosen runs per second, by how long they took.',
      unit: units.Seconds,
      buckets: `sum by (le) (${rate(ofRun('ml_step_duration_seconds_bucket', 'split="train"'))})`,
    },
    {
      kind: 'series',
      title: 'Phases',
      stacked: true,
      description: 'Shares of all the time that the processes of the chosen runs told of.',
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
      description: 'Number of the step that the run is at; it falls back where a restart lost some.',
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
      description: 'The last and the best result; dashed, the one to be reached.',
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
      description: 'As last reported.',
      unit: units.Short,
      queries: [{ expr: ofRun('ml_loss'), legend: `{{split}}: ${RUN}` }],
    },
  ],
};

export const inference: Row = {
  title: 'Inference',
  panels: [
    { ...quantiles('Duration of a request', 'From a request to its end.', 'ml_inference_duration_seconds'), width: 8 },
    {
      ...quantiles('Time to the first token', 'From a request to its first token.', 'ml_time_to_first_token_seconds'),
      width: 8,
    },
    {
      ...quantiles('From token to token', 'From one token of an answer to the next.', 'ml_inter_token_latency_seconds'),
      width: 8,
    },
  ],
};
