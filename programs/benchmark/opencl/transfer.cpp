#include <algorithm>
#include <cstring>

#include "programs/benchmark/opencl/test.hpp"

namespace gpumeter::benchmark::opencl {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20U;
constexpr cl_uint kOther = 0xa5a5a5a5;  ///< what memory holds before it is written

/// Memory of the host that the driver allocated and pinned, mapped while it is in use.
class Pinned {
 public:
  Pinned(Session& session, std::size_t bytes)
      : session_(session),
        buffer_(session.buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR)),
        memory_(session.map(buffer_, bytes)) {}
  ~Pinned() { session_.unmap(buffer_, memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  cl_uint* words() const noexcept { return static_cast<cl_uint*>(memory_); }

 private:
  Session& session_;
  Buffer buffer_;
  void* memory_;
};

class TransferTest {
 public:
  explicit TransferTest(Bench& bench)
      : bench_(bench),
        session_(bench.session),
        from_(session_, kBytes),
        to_(session_, kBytes),
        memory_(session_.buffer(kBytes)),
        peer_(session_.buffer(kBytes)) {}

  void run(bool has_peer) {
    if (!session_.good()) return bench_.ended_early("transfer");
    for (cl_uint i = 0; i < kWords; ++i) from_.words()[i] = i * 2654435761U;
    session_.fill(memory_, kOther, kBytes);
    const bool is_sent =
        measure("host_to_device", [&] { return session_.write(memory_, from_.words(), kBytes); });
    if (!is_sent) return;
    std::fill_n(to_.words(), kWords, kOther);
    if (bench_.faults.transfer) flip(session_, memory_, kWords / 2);
    if (measure("device_to_host", [&] { return session_.read(memory_, to_.words(), kBytes); }))
      check("device_to_host");
    if (!has_peer) return;
    session_.fill(peer_, kOther, kBytes, 1);  // so that it is the second device's
    if (!measure("device_to_device", [&] { return session_.copy(memory_, peer_, kBytes); })) return;
    std::fill_n(to_.words(), kWords, kOther);
    session_.read(peer_, to_.words(), kBytes);
    check("device_to_device");
  }

 private:
  static constexpr cl_uint kWords = kBytes / sizeof(cl_uint);

  template <class Once>
  bool measure(const char* direction, Once once) {
    const auto sample = repeat(bench_.pace, once);
    if (!sample) {
      bench_.ended_early(std::string("transfer ") + direction);
      return false;
    }
    bench_.measured(Quantity::transfer, direction, kBytes, *sample);
    return true;
  }

  void check(const std::string& direction) {
    if (!session_.good()) return bench_.ended_early("transfer " + direction);
    if (std::memcmp(from_.words(), to_.words(), kBytes) == 0) return;
    const auto [first, second] = std::mismatch(from_.words(), from_.words() + kWords, to_.words());
    bench_.outcome.failures.push_back("transfer " + direction + ": word " +
                                      std::to_string(first - from_.words()) + " of " +
                                      std::to_string(kWords) + " came back changed");
  }

  Bench& bench_;
  Session& session_;
  const Pinned from_, to_;
  const Buffer memory_, peer_;
};

}  // namespace

void measure_transfers(Bench& bench, bool has_peer) { TransferTest(bench).run(has_peer); }

}  // namespace gpumeter::benchmark::opencl
