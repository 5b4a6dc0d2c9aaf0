#include "collectors/attribution/allocation/part.hpp"
#include "collectors/attribution/workload_info.hpp"
#include "collectors/host/part.hpp"
#include "daemon/parts/host.hpp"
#include "exporter/health/part.hpp"
#include "exporter/web/part.hpp"

namespace gpumeter {
namespace {

const PartEntry* const kParts[] = {&workloads::kInfo, &allocation::kPart, &host::kPart, &health::kPart,
                                   &web::kHistory};

}  // namespace

std::span<const PartEntry* const> builtin_parts() { return kParts; }

}  // namespace gpumeter
