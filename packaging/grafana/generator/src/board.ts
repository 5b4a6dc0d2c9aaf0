// A dashboard: its variables, then its rows of panels.
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import type { Dashboard, Panel as PanelModel, VariableModel } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  TextBoxVariableBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { alerts, defaultAnnotations, profiles } from './annotations';
import { DATASOURCE } from './common';
import { heatmap } from './heatmap';
import type { Board, Choice, Link, Panel } from './panel';
import { series } from './series';
import { stat } from './stat';
import { table } from './table';
import { timeline } from './timeline';

const TAG = 'gpumeter';

const variables = (board: Board): Builder<VariableModel>[] => [
  new DatasourceVariableBuilder('datasource').label('Data Source').type('prometheus'),
  ...board.choices.map((one) => choice(one, board.single)),
  ...['cluster', 'rack'].map(labelName),
];

/** Which label of the targets names the cluster or the rack: the fleet's own choice. */
const labelName = (what: string) =>
  new TextBoxVariableBuilder(`${what}_label`)
    .label(`${what} label`)
    .description(`Label of the scrape targets that names their ${what}.`)
    .defaultValue(what)
    .current({ selected: true, text: what, value: what })
    .options([{ selected: true, text: what, value: what }]);

const choice = ({ name, query, multi, numbers, all }: Choice, single: boolean) =>
  new QueryVariableBuilder(name)
    .label(name)
    .datasource({ ...DATASOURCE, uid: '$datasource' })
    .query({ query, refId: `variable-${name}` })
    .includeAll(!single || all !== undefined)
    .allValue(all ?? '.+')
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .multi(multi)
    .sort(numbers ? VariableSort.NumericalAsc : VariableSort.NaturalAsc);

function build(panel: Panel): Builder<PanelModel> {
  switch (panel.kind) {
    case 'series':
      return series(panel);
    case 'stat':
      return stat(panel);
    case 'table':
      return table(panel);
    case 'timeline':
      return timeline(panel);
    case 'heatmap':
      return heatmap(panel);
  }
}

/** Where a click on a value leads. */
function linked(builder: Builder<PanelModel>, links: Link[]): Builder<PanelModel> {
  const panel = builder.build();
  const config = (panel.fieldConfig ??= { defaults: {}, overrides: [] });
  // Grafana's data links are plain; the library gives them the type of a dashboard's links.
  if (links.length > 0) Object.assign(config.defaults, { links: links.map((link) => ({ ...link, targetBlank: false })) });
  return { build: () => panel };
}

const siblings = () =>
  new DashboardLinkBuilder('gpumeter').type(DashboardLinkType.Dashboards).tags([TAG]).asDropdown(false).keepTime(true);

export function buildBoard(board: Board): Dashboard {
  const builder = new DashboardBuilder(board.title)
    .uid(board.uid)
    .description(board.description)
    .tags([TAG])
    .readonly()
    .time({ from: 'now-1h', to: 'now' })
    .refresh('30s')
    .timezone('browser')
    .tooltip(DashboardCursorSync.Crosshair)
    .annotations([defaultAnnotations(), ...alerts(board), ...profiles(board)])
    .link(siblings())
    .variables(variables(board));
  for (const row of board.rows) {
    const heading = new RowBuilder(row.title);
    builder.withRow(board.single ? heading.repeat('instance') : heading);
    row.panels.forEach((panel) => builder.withPanel(linked(build(panel), panel.links ?? board.links)));
  }
  return numbered(builder.build());
}

/**
 * Numbers the panels in their order, so that links to a panel stay valid, and takes away what the library writes and Grafana does not
 * know: the fields of interval variables in all others, and the footer that tables no longer have.
 */
function numbered(dashboard: Dashboard): Dashboard {
  dashboard.panels?.forEach((panel, index) => {
    panel.id = index + 1;
    if (panel.type === 'table') delete (panel as { options?: { footer?: unknown } }).options?.footer;
  });
  for (const variable of dashboard.templating?.list ?? []) {
    for (const field of ['auto', 'auto_min', 'auto_count'] as const) delete variable[field];
  }
  return dashboard;
}
