// Energy, GPU time, CO2 and money of workloads and runs, by who is charged for them: user, Slurm account, Kubernetes namespace. Jobs
// that ended count in full. The mean over any time, times its length, is therefore the amount, even of short jobs.
local number = import '../lib/number.libsonnet';
local strings = import '../lib/strings.libsonnet';

local indented(text, by) = std.join('\n', [std.repeat(' ', by) + line for line in strings.lines(text)]);

// Increase of a counter in a second. If a counter starts within the window and the machine was scraped before, the counter started at
// 0. rate() would omit the value at the first scrape, and with it short jobs. A counter that the page had within the hour before did
// not start: its GPU was away.
local counted(counter) = |||
  (%(counter)s unless last_over_time(%(counter)s[1h] offset 5m)
      and on (job, instance) (up offset 5m == 1)) / 300
    > (rate(%(counter)s[5m]) or %(counter)s * 0)
  or rate(%(counter)s[5m])
||| % { counter: counter };
// Over GPUs, and over the parts of energy (active, idle) where a counter has them.
local counted_of_gpus(counter) = |||
  sum without (gpu, uuid, part) (
  %s
  ) > 0
||| % indented(counted(counter), 2);

// A record of workloads by a label of their info. A workload that ended is joined with its info of the last five minutes. If the label
// changed, the present one counts. rest: workloads without the label are the series without it, so the sum is that of all; otherwise
// they are left out.
local by(label, name, rest=false) = {
  record: '%s:%s' % [label, name],
  local text = { name: name, label: label, info: 'gpu_workload_info' + if rest then '' else '{%s!=""}' % label },
  local joined = |||
    workload:%(name)s + on (job, instance, kind, workload) group_left (%(label)s)
      0 * topk by (job, instance, kind, workload) (1, max by (job, instance, kind, workload, %(label)s) (
        %(info)s + 1 or last_over_time(%(info)s[5m])))
  ||| % text,
  local others = |||
    or
      workload:%s
        unless on (job, instance, kind, workload) last_over_time(gpu_workload_info[5m])
  ||| % name,
  expr: |||
    sum without (kind, workload) (
    %s
    )
  ||| % if rest then indented(joined, 4) + '\n' + indented(others, 2) else indented(joined, 2),
};

local optional(condition, rules) = if condition then rules else [];

function(cost)
  // factor: a number, or an expression with one series.
  local times(factor) =
    if std.isNumber(factor) then ' * ' + number.text(factor) else ' * on () group_left () (%s)' % factor;
  local has_energy = cost.pue != null || cost.co2GramsPerKwh != null || cost.pricePerKwh != null;
  local has_kwh_price = cost.pricePerKwh != null;
  local has_gpu_price = cost.pricePerGpuHour != null;

  // of: the level and the metric. per: of an hour, or of a million tokens.
  local energy(of, per, joules, unit) = optional(has_energy, [
    {
      record: '%s_energy_kilowatt_hours:%s' % [of, per],
      expr: '%s%s / %s' % [joules, if cost.pue == null then '' else times(cost.pue), number.text(unit)],
    },
  ]) + optional(cost.co2GramsPerKwh != null, [
    { record: '%s_co2_grams:%s' % [of, per], expr: '%s_energy_kilowatt_hours:%s%s' % [of, per, times(cost.co2GramsPerKwh)] },
  ]);
  local energy_cost(of, per) = optional(has_kwh_price, [{
    record: '%s_cost:%s' % [of, per],
    labels: { item: 'energy' },
    expr: '%s_energy_kilowatt_hours:%s%s' % [of, per, times(cost.pricePerKwh)],
  }]);
  local gpu_cost(of, per, expr) = optional(has_gpu_price, [{ record: '%s_cost:%s' % [of, per], labels: { item: 'time' }, expr: expr }]);

  // The price of the GPUs in `info`, which has a series for each holder and GPU. Holders of one GPU pay equal parts.
  local price_of_held(info) = |||
    sum without (uuid) (
      %(info)s
        / on (job, instance, uuid) group_left () count by (job, instance, uuid) (%(info)s)
        * on (job, instance, uuid) group_left () gpu:gpu_price:per_hour)
  ||| % { info: info };

  [
    // Mean power of each workload over all GPUs of the machine, in watts. With `unattributed` the sum is the power of the GPUs.
    { record: 'workload:gpu_workload_energy_joules:rate5m', expr: counted_of_gpus('gpu_workload_energy_joules_total') },
    by('user', 'gpu_workload_energy_joules:rate5m', rest=true),

    // GPUs that each workload keeps busy, over all GPUs of the machine: seconds of work per second, so its sum over time is the GPU
    // time. Processes that work at the same time count each. Absent if the driver reports no busy time of processes.
    { record: 'workload:gpu_workload_busy_seconds:rate5m', expr: counted_of_gpus('gpu_workload_busy_seconds_total') },
    by('user', 'gpu_workload_busy_seconds:rate5m'),
    by('slurm_account', 'gpu_workload_energy_joules:rate5m'),
    by('slurm_account', 'gpu_workload_busy_seconds:rate5m'),
    by('k8s_namespace', 'gpu_workload_energy_joules:rate5m'),
    by('k8s_namespace', 'gpu_workload_busy_seconds:rate5m'),
  ]

  // Energy of the site for the GPUs in kWh, and its CO2, an hour. The record of a run covers all five minutes, unlike its :rate5m.
  + std.flattenArrays([
    energy(level + ':gpu_workload', 'per_hour', level + ':gpu_workload_energy_joules:rate5m', 1000)
    for level in ['workload', 'user', 'slurm_account', 'k8s_namespace']
  ])
  + energy('run:ml', 'per_hour', '(\n%s\n)' % indented(counted_of_gpus('ml_energy_joules_total'), 2), 1000)

  + optional(has_gpu_price, [
    {
      record: 'gpu:gpu_price:per_hour',
      local prices = if std.isNumber(cost.pricePerGpuHour) then { '.*': cost.pricePerGpuHour } else cost.pricePerGpuHour,
      expr: std.join('\n  or ', [
        'group by (job, instance, uuid) (gpu_info{model=~%s})%s' % [std.escapeStringJson(model), times(prices[model])]
        for model in std.objectFields(prices)
      ]),
    },
    // Part of each GPU that was given to each workload: of a partition, its part of the memory.
    {
      record: 'gpu_workload:gpu_allocated:ratio',
      expr: |||
        sum without (partition) (
            max without (source) (gpu_allocation_info{partition=""})
          or
            max without (source) (gpu_allocation_info{partition!=""})
              * on (job, instance, uuid, partition) group_left () max by (job, instance, uuid, partition) (gpu_partition_memory_size_bytes)
              / on (job, instance, uuid) group_left () max by (job, instance, uuid) (gpu_memory_size_bytes{memory=~"vram|unified"}))
      |||,
    },
    // Part of each GPU that each workload holds: what it was given, divided if several have it, or its share of a GPU that was given
    // to nobody. `unattributed` has the rest, so the sum is 1 for each GPU.
    {
      record: 'gpu_workload:gpu_held:ratio',
      expr: |||
        gpu_workload:gpu_allocated:ratio
          / on (job, instance, uuid) group_left () clamp_min(sum by (job, instance, uuid) (gpu_workload:gpu_allocated:ratio), 1)
        or
          label_replace(label_replace(1 - sum without (kind, workload) (gpu_workload:gpu_allocated:ratio) > 0,
            "kind", "unattributed", "", ""), "workload", "unattributed", "", "")
        or
          gpu_workload_share_ratio > 0 unless on (job, instance, uuid) gpu_workload:gpu_allocated:ratio
      |||,
    },
  ])

  // Money an hour, by item: energy, time.
  + energy_cost('workload:gpu_workload', 'per_hour')
  + gpu_cost('workload:gpu_workload', 'per_hour', |||
    sum without (gpu, uuid) (gpu_workload:gpu_held:ratio * on (job, instance, uuid) group_left () gpu:gpu_price:per_hour)
  |||)
  + optional(has_kwh_price || has_gpu_price, [
    by('user', 'gpu_workload_cost:per_hour', rest=true),
    by('slurm_account', 'gpu_workload_cost:per_hour'),
    by('k8s_namespace', 'gpu_workload_cost:per_hour'),
    // GPUs that nobody uses and nobody was given.
    {
      record: 'instance:gpu_idle_cost:per_hour',
      expr: 'sum without (kind, workload) (workload:gpu_workload_cost:per_hour{kind="unattributed"})',
    },
  ])
  // Part of workload:gpu_workload_cost:per_hour for the time in which GPUs were given to the workload and idle.
  + optional(has_gpu_price, [
    {
      record: 'workload:gpu_allocated_idle_cost:per_hour',
      expr: |||
        sum without (gpu, uuid) (
          avg without (partition) (
        %s
          )
            * on (job, instance, uuid, kind, workload) group_left () last_over_time(gpu_workload:gpu_held:ratio[5m])
            * on (job, instance, uuid) group_left () gpu:gpu_price:per_hour)
      ||| % indented(counted('gpu_allocated_idle_seconds_total'), 4),
    },
    by('user', 'gpu_allocated_idle_cost:per_hour', rest=true),
    by('slurm_account', 'gpu_allocated_idle_cost:per_hour'),
    by('k8s_namespace', 'gpu_allocated_idle_cost:per_hour'),
  ])
  + energy_cost('run:ml', 'per_hour')
  + gpu_cost('run:ml', 'per_hour', price_of_held('max without (gpu, pid, source) (ml_run_gpu_info)'))

  // A million tokens, by kind. Each kind has all of the energy and all of the money.
  + energy('run_kind:ml', 'per_million_tokens', 'run_kind:ml_energy_joules_per_token:ratio_rate5m', 3.6)
  + energy_cost('run_kind:ml', 'per_million_tokens')
  + gpu_cost('run_kind:ml', 'per_million_tokens', |||
    run:ml_cost:per_hour{item="time"} / ignoring (item, kind) group_right () (run_kind:ml_tokens:rate5m * 0.0036)
  |||)
  + energy('server_kind:ml_server', 'per_million_tokens', 'server_kind:ml_server_energy_joules_per_token:ratio_rate5m', 3.6)
  + energy_cost('server_kind:ml_server', 'per_million_tokens')
  + gpu_cost('server_kind:ml_server',
             'per_million_tokens',
             price_of_held('max without (gpu, kind, workload, model) (ml_server_info{uuid!=""})')
             + '  / ignoring (kind) group_right () (rate(ml_server_tokens_total[5m]) * 0.0036 > 0)\n')

  // The use of each GPU of a container, under the name by which OpenCost reads it.
  + optional(cost.openCost, [{
    record: 'DCGM_FI_PROF_GR_ENGINE_ACTIVE',
    expr: |||
      clamp_max(label_join(label_join(label_join(label_join(
        rate(gpu_workload_busy_seconds_total{kind="pod"}[5m])
          * on (job, instance, kind, workload) group_left (k8s_namespace, k8s_pod, k8s_container) gpu_workload_info{k8s_container!=""},
        "namespace", "", "k8s_namespace"), "pod", "", "k8s_pod"), "container", "", "k8s_container"), "uid", "", "workload"), 1)
    |||,
  }])
