#include "collectors/amd/events/smi_device.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace gpumeter::amd {
namespace {

// linux/kfd_ioctl.h, which needs headers of libdrm: struct kfd_ioctl_smi_events_args, AMDKFD_IOC_SMI_EVENTS.
struct SmiEventsArguments {
  std::uint32_t gpuid;    // to the driver
  std::uint32_t anon_fd;  // from the driver
};
constexpr unsigned long kSmiEvents = _IOWR('K', 0x1F, SmiEventsArguments);

Error failure(const std::string& what, int error) {
  return Error(what + ": " + std::generic_category().message(error));
}

}  // namespace

Result<Descriptor> KfdDevice::open_stream(std::uint32_t gpu_id, std::uint64_t mask) {
  if (!node_) node_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!node_) return failure(path_, errno);
  SmiEventsArguments request{};
  request.gpuid = gpu_id;
  if (::ioctl(node_.number(), kSmiEvents, &request) != 0)
    return failure(path_ + ", AMDKFD_IOC_SMI_EVENTS", errno);
  Descriptor stream(static_cast<int>(request.anon_fd));
  ::fcntl(stream.number(), F_SETFD, FD_CLOEXEC);
  if (::write(stream.number(), &mask, sizeof mask) != sizeof mask)
    return failure(path_ + ", the choice of events", errno);
  return stream;
}

}  // namespace gpumeter::amd
