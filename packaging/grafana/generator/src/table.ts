// One row per device. Each value column has its own query; rows with equal labels are merged.
import { TableSortByFieldStateBuilder } from '@grafana/grafana-foundation-sdk/common';
import type { DataTransformerConfig, DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/table';
import { FieldColorModeId, asTable, colours, dress, overridesOf, refId } from './common';
import type { Column, TablePanel } from './panel';

const CELLS = {
  text: { type: 'auto' },
  colour: { type: 'color-background', mode: 'basic' },
  bar: { type: 'gauge', mode: 'basic', valueDisplayMode: 'text' },
};

type ValueColumn = Extract<Column, { expr: string }>;
const isValue = (column: Column): column is ValueColumn => 'expr' in column;

/** The name that Grafana gives a column: its label, or `Value` with the query's letter. */
const sourceName = (column: Column, values: ValueColumn[]) =>
  isValue(column) ? `Value #${refId(values.indexOf(column))}` : column.label;

function arrange(panel: TablePanel, values: ValueColumn[]): DataTransformerConfig[] {
  const names = panel.columns.map((column) => sourceName(column, values));
  const renamed = panel.columns.map((column, index) => [names[index], column.name]);
  const order = names.map((name, index) => [name, index]);
  return [
    { id: 'merge', options: {} },
    // filterFieldsByName keeps the listed names, in no order, and hides all other labels.
    { id: 'filterFieldsByName', options: { include: { names } } },
    {
      id: 'organize',
      options: { renameByName: Object.fromEntries(renamed), indexByName: Object.fromEntries(order), excludeByName: {} },
    },
  ];
}

function overrides(column: Column): DynamicConfigValue[] {
  const said: DynamicConfigValue[] = isValue(column)
    ? [...overridesOf(column), { id: 'custom.cellOptions', value: CELLS[column.cell ?? 'text'] }]
    : [
        { id: 'custom.hidden', value: column.hidden ?? false },
        { id: 'unit', value: 'string' },
      ];
  if (!isValue(column) && column.link) said.push({ id: 'links', value: [{ ...column.link, targetBlank: false }] });
  if (column.width) said.push({ id: 'custom.width', value: column.width });
  return said;
}

const sorting = (name: string) =>
  new TableSortByFieldStateBuilder().displayName(name.replace(/^-/, '')).desc(name.startsWith('-'));

export function table(panel: TablePanel): PanelBuilder {
  const values = panel.columns.filter(isValue);
  const builder = dress(new PanelBuilder(), { width: 24, height: 10, ...panel }, panel)
    .targets(asTable([...values.map((column) => column.expr), ...(panel.facts ?? [])]))
    .colorScheme(colours(FieldColorModeId.Thresholds))
    .transformations(arrange(panel, values))
    .sortBy((panel.sortBy ?? []).map(sorting));
  panel.columns.forEach((column) => builder.overrideByName(column.name, overrides(column)));
  return builder;
}
