// The PCIe link. Its fatal errors are a reason of gpu_health_reason.
local text = import '../lib/annotations.libsonnet';

function(config, make) [
  // An idle link runs slowly, on some cards also with one lane, to save power. Both count only while the card is busy, and only
  // if no reading within 5 minutes was at the maximum.
  make.gpu_alert(
    'GpuPcieLinkDegraded',
    'warning',
    |||
      (
          max_over_time(gpu_pcie_link_lanes[5m]) < gpu_pcie_link_max_lanes
        or
          max_over_time(gpu_pcie_link_generation[5m]) < gpu_pcie_link_max_generation
      ) and gpu:gpu_utilization:ratio_rate5m > %s
    ||| % config.busyRatio,
    'has a PCIe link that runs below its maximum',
    'The PCIe link of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) runs below its maximum.'
    + text.value(text.selector('gpu_pcie_link_generation'), 'Generation', '')
    + text.value(text.selector('gpu_pcie_link_max_generation'), 'of', '.')
    + text.value(text.selector('gpu_pcie_link_lanes'), 'Lanes', '')
    + text.value(text.selector('gpu_pcie_link_max_lanes'), 'of', '.')
    + text.utilisation(config.percent.busyRatio)
  ),
  make.gpu_alert(
    'GpuPcieReplays',
    'warning',
    'rate(gpu_pcie_replays_total[5m]) * 60 > %s\n' % config.pcieReplaysPerMinute,
    'retransmits many PCIe packets',
    |||
      The PCIe link of GPU {{ $labels.gpu }} ({{ $labels.uuid }}) retransmits {{ $value | humanize }} packets a minute; the alert's
      limit is %s.
    ||| % config.pcieReplaysPerMinute
    + text.value(text.selector('gpu_pcie_link_generation'), 'Generation', '.')
    + text.value(text.selector('gpu_pcie_link_lanes'), 'Lanes', '.')
  ),
]
