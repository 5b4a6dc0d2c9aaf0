#include "collectors/attribution/allocation/part.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/containers/part.hpp"
#include "collectors/host/part.hpp"
#include "collectors/host/power.hpp"
#include "collectors/kernel/part.hpp"
#include "collectors/kubernetes/part.hpp"
#include "collectors/pages/part.hpp"
#include "collectors/pages/replay.hpp"
#include "daemon/parts/host.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/otlp/part.hpp"
#include "exporter/web/live_answers.hpp"

namespace gpumeter {

std::span<const PartEntry* const> builtin_parts() {
  // On a single page, names come before the workloads that have them.
  static const PartEntry* const kParts[] = {&kubelet::kPart,   &containers::kPart, &workloads::kEnvironment,
                                            &workloads::kInfo, &allocation::kPart, &host::kPart,
                                            &host::kPower,     &kernel::kPart,     &pages::kPart,
                                            &pages::kReplay,   &health::kPart,     &web::kHistory,
                                            &otlp::kPart};
  return kParts;
}

std::span<const PartEntry* const> parts_of_recording() {
  static const PartEntry* const kParts[] = {&pages::kReplay, &health::kPart, &web::kHistory, &otlp::kPart};
  return kParts;
}

}  // namespace gpumeter
