// Records of benchmarks: each GPU against its own past and against the others of its model.

local strings = import '../lib/strings.libsonnet';
local rates = {
  'dtype, backend': 'gpu_benchmark_flops',
  operation: 'gpu_benchmark_memory_bandwidth_bytes_per_second',
};
local each(make) = std.join('  or\n', ['    %s\n' % strings.unended(make(kinds, rates[kinds])) for kinds in std.objectFields(rates)]);

[
  // The lowest ratio of any rate to the same rate a week or a month ago; two readings of the past cost much less than a window
  // of a month. Transfers are left out: they depend on what else the machine does.
  {
    record: 'gpu:gpu_benchmark_before:ratio_min',
    expr: 'min without (dtype, backend, operation, days) (\n' + std.join('  or\n', [
      '    label_replace(%s / (%s offset %dd > 0), "days", "%d", "", "")\n' % [rates[kinds], rates[kinds], days, days]
      for kinds in std.objectFields(rates)
      for days in [7, 30]
    ]) + ')\n',
  },
  // The lowest ratio of any rate to the median of at least three GPUs of the model. GPUs without a label `model` have no peers.
  {
    record: 'gpu:gpu_benchmark_peers:ratio_min',
    expr: 'min without (dtype, backend, operation) (\n' + each(function(kinds, rate) |||
      (%(rate)s unless %(rate)s{model=""}) / on (job, vendor, model, %(kinds)s) group_left ()
            (quantile by (job, vendor, model, %(kinds)s) (0.5, %(rate)s) > 0
              and count by (job, vendor, model, %(kinds)s) (%(rate)s) >= 3)
    ||| % { rate: rate, kinds: kinds }) + ')\n',
  },
]
