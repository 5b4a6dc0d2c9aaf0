// Results of benchmarks. They change once a day or less, so the hold times are those of the next result.
local text = import '../lib/annotations.libsonnet';

function(config, make) [
  // A warning: a job that computes on the GPU does not fail, but its results may be wrong.
  make.gpu_alert(
    'GpuBenchmarkFailed',
    'warning',
    'gpu_benchmark_failed == 1\n',
    'failed its benchmark',
    'GPU {{ $labels.gpu }} ({{ $labels.uuid }}) computed a wrong result in its last benchmark, or could not complete it.',
    hold=null
  ),
  make.gpu_alert(
    'GpuSlowerThanBefore',
    'warning',
    'gpu:gpu_benchmark_before:ratio_min < %s\n' % config.benchmarkRatio,
    'is slower than it was',
    |||
      GPU {{ $labels.gpu }} ({{ $labels.uuid }}) reaches {{ $value | humanizePercentage }} of what it reached a week or a month ago in
      at least one benchmark; the alert's limit is %s.
    ||| % config.percent.benchmarkRatio
  ),
  make.gpu_alert(
    'GpuSlowerThanPeers',
    'warning',
    'gpu:gpu_benchmark_peers:ratio_min < %s\n' % config.benchmarkRatio,
    'is slower than others of its model',
    |||
      GPU {{ $labels.gpu }} ({{ $labels.uuid }}) reaches {{ $value | humanizePercentage }} of the median of its model in at least one
      benchmark; the alert's limit is %s.
    ||| % config.percent.benchmarkRatio
  ),
]
