// Addresses of the dashboards, for the links in panels.
import type { Link } from './panel';

type Values = Record<string, string>;

const to = (uid: string, values: Values) =>
  `/d/${uid}?${['${datasource:queryparam}', ...Object.entries(values).map(([name, value]) => `var-${name}=${value}`), '${__url_time_range}'].join('&')}`;

/** Of the series that was clicked. */
const label = (name: string) => `\${__field.labels.${name}}`;
/** Of the row that was clicked. */
const cell = (name: string) => `\${__data.fields.${name}}`;

const HOST: Values = { job: label('job'), instance: label('instance') };
const HOST_CELLS: Values = { job: cell('job'), instance: cell('Instance') };

export const TO_GPU: Link = { title: 'This GPU in depth', url: to('gpumeter-gpu', { ...HOST, gpu: label('gpu') }) };
export const TO_NODE: Link = { title: 'The GPUs of this machine', url: to('gpumeter-fleet', HOST) };
export const TO_JOBS: Link = { title: 'The jobs of this machine', url: to('gpumeter-jobs', HOST) };
export const TO_RUN: Link = {
  title: 'This run alone',
  url: to('gpumeter-jobs', { ...HOST, user: label('user'), run: label('run') }),
};

export const ROW_TO_GPU: Link = { title: 'This GPU in depth', url: to('gpumeter-gpu', { ...HOST_CELLS, gpu: cell('GPU') }) };
export const ROW_TO_NODE: Link = { title: 'The GPUs of this machine', url: to('gpumeter-fleet', HOST_CELLS) };
export const ROW_TO_JOBS: Link = { title: 'The jobs of this machine', url: to('gpumeter-jobs', HOST_CELLS) };
export const ROW_TO_RUN: Link = {
  title: 'This run alone',
  url: to('gpumeter-jobs', { ...HOST_CELLS, user: cell('User'), run: cell('Run') }),
};

/** For panels that sum over GPUs: what is chosen at the top stays chosen. */
const CHOSEN = '${datasource:queryparam}&${job:queryparam}&${instance:queryparam}&${__url_time_range}';
export const CHOSEN_JOBS: Link = { title: 'The jobs of these machines', url: `/d/gpumeter-jobs?${CHOSEN}` };
export const CHOSEN_FLEET: Link = { title: 'The GPUs of these machines', url: `/d/gpumeter-fleet?${CHOSEN}` };
