"""Maps lines of `nvidia-smi -q` to keys of a scenario."""

# Key of the scenario <- path in the output; in WORDS as a word of the scenario.
PLAIN = {
    "name": "Product Name", "uuid": "GPU UUID", "serial": "Serial Number", "minor": "Minor Number",
    "vbios": "VBIOS Version", "inforom": "Inforom Version/Image Version", "gsp_firmware": "GSP Firmware Version",
    "inforom_oem": "Inforom Version/OEM Object", "inforom_ecc": "Inforom Version/ECC Object",
    "inforom_power": "Inforom Version/Power Management Object", "board_id": "Board ID", "board_part_number": "Board Part Number",
    "pdi": "GPU PDI", "module_id": "Platform Info/Module Id", "pci.base_class": "PCI/Base Classcode", "pci.sub_class": "PCI/Sub Classcode",
    "pci.bus_id": "PCI/Bus Id", "pci.device_id": "PCI/Device Id", "pci.subsystem_id": "PCI/Sub System Id",
    "utilization.gpu": "Utilization/GPU", "utilization.memory": "Utilization/Memory",
    "engines.encoder": "Utilization/Encoder", "engines.decoder": "Utilization/Decoder",
    "engines.jpeg": "Utilization/JPEG", "engines.ofa": "Utilization/OFA",
    "temperature.gpu": "Temperature/GPU Current Temp", "temperature.thresholds.shutdown": "Temperature/GPU Shutdown Temp",
    "temperature.thresholds.slowdown": "Temperature/GPU Slowdown Temp",
    "temperature.thresholds.gpu_max": "Temperature/GPU Max Operating Temp",
    "temperature.thresholds.memory_max": "Temperature/Memory Max Operating Temp",
    "fields.82": "Temperature/Memory Current Temp", "fields.193": "Temperature/GPU Shutdown T.Limit Temp",
    "fields.194": "Temperature/GPU Slowdown T.Limit Temp", "fields.195": "Temperature/Memory Max Operating T.Limit Temp",
    "fields.196": "Temperature/GPU Max Operating T.Limit Temp",
    "clocks.graphics": "Clocks/Graphics", "clocks.sm": "Clocks/SM", "clocks.memory": "Clocks/Memory",
    "clocks.video": "Clocks/Video", "clocks.max.graphics": "Max Clocks/Graphics", "clocks.max.sm": "Max Clocks/SM",
    "clocks.max.memory": "Max Clocks/Memory", "clocks.max.video": "Max Clocks/Video", "clocks.pstate": "Performance State",
    "fields.74": "Clocks Event Reasons Counters/SW Power Capping", "fields.76": "Clocks Event Reasons Counters/Sync Boost",
    "fields.269": "Clocks Event Reasons Counters/SW Thermal Slowdown",
    "fields.270": "Clocks Event Reasons Counters/HW Thermal Slowdown",
    "fields.271": "Clocks Event Reasons Counters/HW Power Braking",
    "pcie.generation": "PCI/GPU Link Info/PCIe Generation/Current",
    "pcie.max_generation": "PCI/GPU Link Info/PCIe Generation/Max", "pcie.width": "PCI/GPU Link Info/Link Width/Current",
    "pcie.max_width": "PCI/GPU Link Info/Link Width/Max", "pcie.replays": "PCI/Replays Since Reset",
    "fields.94": "PCI/Replays Since Reset", "fields.95": "PCI/Replay Number Rollovers",
    "retired_pages.single_bit": "Retired Pages/Single Bit ECC", "retired_pages.double_bit": "Retired Pages/Double Bit ECC",
    "fields.29": "Retired Pages/Single Bit ECC", "fields.30": "Retired Pages/Double Bit ECC",
    "remapped_rows.corrected": "Remapped Rows/Correctable Error", "fields.142": "Remapped Rows/Correctable Error",
    "remapped_rows.uncorrected": "Remapped Rows/Uncorrectable Error", "fields.143": "Remapped Rows/Uncorrectable Error",
    "pcie.gpu_max_generation": "PCI/GPU Link Info/PCIe Generation/Device Max", "fields.274": "EDPp Multiplier",
    "clocks.customer_boost": "Max Customer Boost Clocks/Graphics",
    "fabric.clique": "Fabric/CliqueId", "fabric.cluster_uuid": "Fabric/ClusterUUID",
} | {f"protected_memory.{key.lower()}": f"Conf Compute Protected Memory Usage/{key}" for key in ("Total", "Used", "Free")} | {
    f"{key}.{part}": f"{group}/{title}" for key, group in (("encoder", "Encoder Stats"), ("capture", "FBC Stats"))
    for part, title in (("sessions", "Active Sessions"), ("frames_per_second", "Average FPS"), ("latency_usec", "Average Latency"))} | {
    f"sram.{key}": f"ECC Errors/Aggregate Uncorrectable SRAM Sources/SRAM {title}"
    for key, title in (("l2", "L2"), ("sm", "SM"), ("mcu", "Microcontroller"), ("pcie", "PCIE"), ("other", "Other"))}
WORDS = {
    "modes.persistence": "Persistence Mode", "modes.compute": "Compute Mode", "modes.display_active": "Display Active",
    "brand": "Product Brand", "multi_gpu_board": "MultiGPU Board", "modes.accounting": "Accounting Mode",
    "modes.addressing": "Addressing Mode", "modes.c2c": "GPU C2C Mode", "capabilities": "Capabilities/EGM",
    "virtualization": "GPU Virtualization Mode/Virtualization Mode", "sram.threshold_exceeded": "ECC Errors/Aggregate/SRAM Threshold Exceeded",
    "repair.channel": "ECC Errors/Channel Repair Pending", "repair.tpc": "ECC Errors/TPC Repair Pending",
    "unrepairable_memory": "ECC Errors/Unrepairable Memory",
    "modes.ecc": "ECC Mode/Current", "modes.ecc_pending": "ECC Mode/Pending", "fields.1": "ECC Mode/Current",
    "fields.2": "ECC Mode/Pending", "mig.mode": "MIG Mode/Current", "mig.mode_pending": "MIG Mode/Pending",
    "remapped_rows.pending": "Remapped Rows/Pending", "remapped_rows.failure": "Remapped Rows/Remapping Failure Occurred",
    "fields.144": "Remapped Rows/Pending", "fields.145": "Remapped Rows/Remapping Failure Occurred",
    "fields.31": "Retired Pages/Pending Page Blacklist", "fabric.state": "Fabric/State", "fabric.status": "Fabric/Status",
    "fabric.health_summary": "Fabric/Health/Summary",
}
REASONS = {"Idle": "gpu_idle", "Applications Clocks Setting": "applications_clocks", "SW Power Cap": "sw_power_cap",
           "HW Slowdown": "hw_slowdown", "HW Thermal Slowdown": "hw_thermal", "HW Power Brake Slowdown": "hw_power_brake",
           "Sync Boost": "sync_boost", "SW Thermal Slowdown": "sw_thermal", "Display Clock Setting": "display_clocks"}
RECOVERY = {"none": "none", "reset": "gpu_reset", "gpu_reset": "gpu_reset", "reboot": "node_reboot",
            "node_reboot": "node_reboot", "drain_p2p": "drain_p2p", "drain_and_reset": "drain_and_reset"}
ATTRIBUTES = {"multiprocessors": "Multiprocessor count", "copy_engines": "Copy Engine count", "encoders": "Encoder count",
              "decoders": "Decoder count", "ofas": "OFA count", "jpegs": "JPG count"}
# NVML_POWER_SCOPE_*: the group that nvidia-smi prints of each.
POWER_SCOPES = {1: "Module Power Readings", 2: "GPU Memory Power Readings"}
# NVML_GPU_FABRIC_HEALTH_MASK_*: the shift of each pair of bits; 1 true, 2 false.
HEALTH = {"Bandwidth": 0, "Route Recovery in progress": 2, "Route Unhealthy": 4, "Access Timeout Recovery": 6,
          "Partition Assigned": 12}
