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
  return "engines of Intel GPUs: the kernel refuses perf_event_open, so their busy time comes from "
         "/proc/PID/fdinfo of the processes that may be read; the counters need CAP_PERFMON: copy pmu.conf "
         "from "
         "/usr/share/doc/gpumeter/examples/systemd to /etc/systemd/system/gpumeter.service.d";
}

}  // namespace gpumeter::intel::pmu
