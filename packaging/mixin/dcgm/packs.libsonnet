// The two rule packs with dcgm-exporter's names.
local rows = import 'rows.libsonnet';
local from = import 'value.libsonnet';

local copies = {
  gpu: ['vendor_index', '$1', '(.+)'],
  device: ['gpu', 'nvidia$1', '(.+)'],
  UUID: ['uuid', '$1', '(.+)'],
  modelName: ['model', '$1', '(.+)'],
  Hostname: ['instance', '$1', '(.+?)(?::[0-9]+)?'],
  hostname: ['instance', '$1', '(.+?)(?::[0-9]+)?'],
  pci_bus_id: ['pci_address', '0000$1', '(.+)'],
  DCGM_FI_DRIVER_VERSION: ['driver_version', '$1', '(.+)'],
  DCGM_FI_SYSTEM_DRIVER_VERSION: ['driver_version', '$1', '(.+)'],
};

// The labels of each dcgm-exporter series, for NVIDIA cards only. A join with this record adds the labels and drops other vendors.
// The join is by uuid, which is globally unique for NVIDIA cards; `gpu` is the driver's index, as in dcgm-exporter.
local info(record, labels) = {
  record: record,
  expr: std.repeat('label_replace(', std.length(labels)) + '\n  gpu_info{vendor="nvidia"}'
        + std.join('', [',\n  "%s", "%s", "%s", "%s")' % ([label] + [copies[label][i] for i in [1, 0, 2]]) for label in labels]),
};

// A template of rows.libsonnet, filled without std.format, which takes milliseconds.
local filled(template, value) = std.strReplace(template, '%s', value);

local pack(name, record, labels, rules) =
  local joined = '\n  * on (job, instance, uuid) group_left (' + std.join(', ', labels) + ') ' + record;
  [{
    name: name,
    rules: [info(record, labels), from.newestXid] + [{ record: rule.name, expr: rule.value + joined } for rule in rules],
  }];

{
  // dcgm-exporter renamed `Hostname` to `hostname` in 4.8.3: both are here.
  '4.8': pack('gpumeter-dcgm-names',
              'gpu:dcgm_labels:info',
              ['gpu', 'device', 'UUID', 'modelName', 'Hostname', 'hostname', 'pci_bus_id', 'DCGM_FI_DRIVER_VERSION'],
              [{ name: row.old, value: filled(row.toOld, row.value) } for row in rows]),
  '4.9': pack('gpumeter-dcgm-names-4.9',
              'gpu:dcgm_labels_4_9:info',
              ['gpu', 'device', 'UUID', 'modelName', 'hostname', 'pci_bus_id', 'DCGM_FI_SYSTEM_DRIVER_VERSION'],
              [{ name: row.new, value: filled(row.toNew, row.value) } for row in rows if row.new != null]),
}
