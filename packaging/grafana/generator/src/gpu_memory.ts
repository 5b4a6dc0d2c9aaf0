// The device's memory and its links.
import type { Row } from './panel';
import { meanShare, ofGpu, rate } from './promql';
import { BYTES, BYTES_PER_SECOND, COUNT, SHARE } from './scales';

const VIDEO_MEMORY = 'memory="vram"';

export const memory: Row = {
  title: 'Memory of GPU $gpu of $instance',
  panels: [
    {
      kind: 'series',
      title: 'Video memory',
      description: 'In use, kept by the driver or the firmware for itself, and (dashed) all there is.',
      ...BYTES,
      queries: [
        { expr: ofGpu('gpu_memory_used_bytes', VIDEO_MEMORY), legend: 'used' },
        { expr: ofGpu('gpu_memory_reserved_bytes', VIDEO_MEMORY), legend: 'reserved' },
        { expr: ofGpu('gpu_memory_size_bytes', VIDEO_MEMORY), legend: 'size', look: 'most' },
      ],
    },
    {
      kind: 'series',
      title: 'Every memory, share used',
      description:
        'Video memory (vram), system memory mapped for the GPU (gtt), and the window through which the CPU reaches it (bar1).',
      ...SHARE,
      queries: [
        { expr: `${ofGpu('gpu_memory_used_bytes')} / ${ofGpu('gpu_memory_size_bytes')}`, legend: '{{memory}}' },
      ],
    },
    {
      kind: 'series',
      title: 'Memory traffic',
      description: 'Bytes read from the video memory and written to it.',
      ...BYTES_PER_SECOND,
      queries: [
        { expr: rate(ofGpu('gpu_memory_read_bytes_total')), legend: 'read' },
        { expr: rate(ofGpu('gpu_memory_written_bytes_total')), legend: 'written' },
      ],
    },
    {
      kind: 'series',
      title: 'Memory bandwidth',
      description:
        'Traffic against the most that the memory can do, and share of time in which its controller moved data.',
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
      description: 'Bytes per second as the device counts them.',
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
        'Generation and lanes that the upstream link runs with now; dashed, the most that it can. The generation falls while idle; lanes that stay away do not.',
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
      description: 'Over NVLink, XGMI or Xe Link, all links together.',
      ...BYTES_PER_SECOND,
      queries: [
        { expr: rate(ofGpu('gpu_interconnect_received_bytes_total')), legend: '{{kind}} received' },
        { expr: rate(ofGpu('gpu_interconnect_transmitted_bytes_total')), legend: '{{kind}} transmitted' },
      ],
    },
    {
      kind: 'series',
      title: 'Links between GPUs',
      description: 'Those that are up; dashed, those that the device has.',
      ...COUNT,
      queries: [
        { expr: ofGpu('gpu_interconnect_links_up'), legend: '{{kind}} up', look: 'step' },
        { expr: ofGpu('gpu_interconnect_links'), legend: '{{kind}} there', look: 'most' },
      ],
    },
  ],
};
