// The device's memory and its links.
import type { Row } from './panel';
import { meanShare, ofGpu, rate, VIDEO_MEMORY } from './promql';
import { BYTES, BYTES_PER_SECOND, COUNT, SHARE } from './scales';

export const memory: Row = {
  title: 'Memory of GPU $gpu of $instance',
  panels: [
    {
      kind: 'series',
      title: 'Video memory',
      width: 8,
      description:
        'Used, reserved by the driver or the firmware, and total (dashed). If the GPU has no memory of its own: the memory of the host, of which other programs use a part.',
      ...BYTES,
      queries: [
        { expr: ofGpu('gpu_memory_used_bytes', VIDEO_MEMORY), legend: 'used' },
        { expr: ofGpu('gpu_memory_reserved_bytes', VIDEO_MEMORY), legend: 'reserved' },
        { expr: ofGpu('gpu_memory_size_bytes', VIDEO_MEMORY), legend: 'size', look: 'most' },
      ],
    },
    {
      kind: 'series',
      title: 'Used share of each memory',
      width: 8,
      description:
        'Video memory (vram), system memory mapped for the GPU (gtt), the memory of the host if the GPU has none of its own (unified), and the window through which the CPU accesses it (bar1).',
      ...SHARE,
      queries: [
        { expr: `${ofGpu('gpu_memory_used_bytes')} / ${ofGpu('gpu_memory_size_bytes')}`, legend: '{{memory}}' },
      ],
    },
    {
      kind: 'series',
      title: 'Memory bandwidth',
      width: 8,
      description:
        'Traffic as a share of the peak bandwidth, and share of time in which the controller transferred data.',
      ...SHARE,
      queries: [
        { expr: ofGpu('gpu_memory_bandwidth_utilization_ratio'), legend: 'bandwidth' },
        { expr: meanShare('gpu_memory_controller_busy_seconds_total'), legend: 'controller busy' },
      ],
    },
  ],
};

export const links: Row = {
  title: 'Links of GPU $gpu of $instance',
  panels: [
    {
      kind: 'series',
      title: 'PCIe traffic',
      description: 'Bytes per second, counted by the device.',
      ...BYTES_PER_SECOND,
      queries: [
        { expr: rate(ofGpu('gpu_pcie_received_bytes_total')), legend: 'received' },
        { expr: rate(ofGpu('gpu_pcie_transmitted_bytes_total')), legend: 'transmitted' },
      ],
    },
    {
      kind: 'series',
      title: 'PCIe link',
      description:
        'Current generation and lanes of the upstream link; the maxima are dashed. The generation falls while idle; the lanes do not.',
      ...COUNT,
      queries: [
        { expr: ofGpu('gpu_pcie_link_generation'), legend: 'generation', look: 'step' },
        { expr: ofGpu('gpu_pcie_link_max_generation'), legend: 'generation, highest', look: 'most' },
        { expr: ofGpu('gpu_pcie_link_lanes'), legend: 'lanes', look: 'step' },
        { expr: ofGpu('gpu_pcie_link_max_lanes'), legend: 'lanes, most', look: 'most' },
      ],
    },
    {
      kind: 'series',
      title: 'Traffic between GPUs',
      description: 'Sum over all NVLink, XGMI or Xe Link links.',
      ...BYTES_PER_SECOND,
      queries: [
        { expr: rate(ofGpu('gpu_interconnect_received_bytes_total')), legend: '{{kind}} received' },
        { expr: rate(ofGpu('gpu_interconnect_transmitted_bytes_total')), legend: '{{kind}} transmitted' },
      ],
    },
    {
      kind: 'series',
      title: 'Links between GPUs',
      description: 'Links that are up; the total is dashed.',
      ...COUNT,
      queries: [
        { expr: ofGpu('gpu_interconnect_links_up'), legend: '{{kind}} up', look: 'step' },
        { expr: ofGpu('gpu_interconnect_links'), legend: '{{kind}} total', look: 'most' },
      ],
    },
  ],
};
