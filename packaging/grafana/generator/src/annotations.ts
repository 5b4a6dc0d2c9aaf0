// Alerts as marks over time. Without rules in Prometheus there are none.
import { AnnotationQueryBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { DATASOURCE } from './common';
import type { Board } from './panel';

/** Notes that users write, as every dashboard of Grafana has them. */
export const defaultAnnotations = () =>
  new AnnotationQueryBuilder()
    .name('Annotations & Alerts')
    .datasource({ type: 'grafana', uid: '-- Grafana --' })
    .builtIn(1)
    .enable(true)
    .hide(true)
    .type('dashboard')
    .iconColor('rgba(0, 211, 255, 1)');

const COLOURS: [severity: string, colour: string][] = [
  ['critical', 'red'],
  ['warning', 'orange'],
];

/** Alerts of one GPU, or of machines and their GPUs. An alert of a machine has no label `gpu`. */
export const alerts = (board: Board) =>
  COLOURS.map(([severity, colour]) =>
    new AnnotationQueryBuilder()
      .name(`${severity} alerts`)
      .datasource(DATASOURCE)
      .enable(true)
      .iconColor(colour)
      .expr(
        `ALERTS{alertname=~"Gpu.*", alertstate="firing", severity="${severity}", instance=~"$instance"${board.single ? ', gpu=~"$gpu|"' : ''}}`,
      )
      .step('60s')
      .titleFormat('{{alertname}}')
      .textFormat('{{instance}} GPU {{gpu}}')
      .tagKeys('severity'),
  );

/** A mark for a minute after each profile of a run. The daemon's log says where the trace is. */
export const profiles = (board: Board) =>
  board.uid !== 'gpumeter-jobs'
    ? []
    : [
        new AnnotationQueryBuilder()
          .name('Profiles')
          .datasource(DATASOURCE)
          .enable(true)
          .iconColor('purple')
          .expr('time() - ml_profile_last_timestamp_seconds{instance=~"$instance", run=~"$run"} < 60')
          .step('60s')
          .titleFormat('Profile of {{run}}')
          .textFormat('{{trigger}}, {{instance}}')
          .tagKeys('trigger'),
      ];
