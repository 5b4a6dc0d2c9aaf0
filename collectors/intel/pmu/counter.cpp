#include "collectors/intel/pmu/counter.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel::pmu {
namespace {

class KernelCounter final : public Counter {
 public:
  explicit KernelCounter(Descriptor file) : file_(std::move(file)) {}

  ReadStatus read(std::uint64_t& count) noexcept override {
    ssize_t size = -1;
    do {
      size = ::read(file_.number(), &count, sizeof(count));
    } while (size < 0 && errno == EINTR);
    if (size < 0) return sysfs::status_of(errno);
    return size == sizeof(count) ? ReadStatus::ok : ReadStatus::gone;  // 0 bytes: the PMU was removed
  }

 private:
  Descriptor file_;
};

}  // namespace

// The drivers refuse a sampling period and every processor outside their cpumask.
Opened KernelOpener::open(const Event& event) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = event.type;
  attributes.config = event.config;
  constexpr int kEveryProcess = -1;
  constexpr int kNoGroup = -1;
  const long number = ::syscall(SYS_perf_event_open, &attributes, kEveryProcess, event.cpu, kNoGroup,
                                static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  if (number < 0) return sysfs::status_of(errno);
  return std::make_unique<KernelCounter>(Descriptor(static_cast<int>(number)));
}

ReadStatus permission(Opener& opener) {
  const Opened opened = opener.open({PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0});
  const ReadStatus* const refused = std::get_if<ReadStatus>(&opened);
  return refused == nullptr ? ReadStatus::ok : *refused;
}

std::string denial_note() {
  return "Intel GPUs: without CAP_PERFMON the kernel refuses the counters of their engines and hides how "
         "much "
         "memory is used. gpumeter then has the busy time of the processes that it may read in "
         "/proc/PID/fdinfo, of its own user only without process.conf, and may have no used memory: copy "
         "pmu.conf from /usr/share/doc/gpumeter/examples/systemd to /etc/systemd/system/gpumeter.service.d";
}

}  // namespace gpumeter::intel::pmu
