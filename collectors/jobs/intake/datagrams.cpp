#include "collectors/jobs/intake/datagrams.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "collectors/jobs/wire/payload.hpp"

namespace gpumeter::jobs {
namespace {

/// A cache line more than a message has, because at a distance of 64 KiB the starts of all messages would
/// share one set of the processor's cache.
constexpr std::size_t kStride = kMaxPayload + 64;

/// Room for exactly the time and the credentials, which the kernel puts first. Descriptors that a client
/// sends along then do not fit, and the kernel closes them.
constexpr std::size_t kControl = CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(ucred));

/// Closes sent descriptors if a kernel delivers them nevertheless.
void close_all(const cmsghdr& part) {
  const std::size_t count = (part.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < count; ++i) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(&part) + i * sizeof descriptor, sizeof descriptor);
    close(descriptor);
  }
}

void read_control(msghdr& header, Datagram& datagram) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred from{};
      std::memcpy(&from, CMSG_DATA(part), sizeof from);
      datagram.from = {from.pid, from.uid};
    } else if (part->cmsg_type == SCM_TIMESTAMPNS) {
      timespec sent{};
      std::memcpy(&sent, CMSG_DATA(part), sizeof sent);
      datagram.sent = std::chrono::seconds(sent.tv_sec) + Nanoseconds(sent.tv_nsec);
    } else if (part->cmsg_type == SCM_RIGHTS) {
      close_all(*part);
    }
  }
}

}  // namespace

struct Datagrams::Batch {
  static constexpr std::size_t kBatch = Datagrams::kBatch;

  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> parts{};
  struct alignas(cmsghdr) Control {
    std::array<char, kControl> bytes;
  };
  std::array<Control, kBatch> controls{};
  const std::unique_ptr<char[]> bytes{new char[kBatch * kStride]};  // not zeroed: see the header

  Batch() {
    for (std::size_t i = 0; i < kBatch; ++i) {
      parts[i] = {bytes.get() + i * kStride, kMaxPayload};
      msghdr& header = messages[i].msg_hdr;
      header.msg_iov = &parts[i];
      header.msg_iovlen = 1;
      header.msg_control = controls[i].bytes.data();
      header.msg_controllen = kControl;
    }
  }
};

Datagrams::Datagrams() : batch_(std::make_unique<Batch>()) {}
Datagrams::~Datagrams() = default;

std::size_t Datagrams::read(int descriptor, const std::function<void(const Datagram&)>& take) {
  const int count =
      recvmmsg(descriptor, batch_->messages.data(), kBatch, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, nullptr);
  const auto received = static_cast<std::size_t>(std::max(count, 0));
  for (std::size_t i = 0; i < received; ++i) {
    mmsghdr& message = batch_->messages[i];
    Datagram datagram;
    read_control(message.msg_hdr, datagram);
    datagram.payload = {static_cast<const char*>(batch_->parts[i].iov_base), message.msg_len};
    datagram.cut = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
    message.msg_hdr.msg_controllen = kControl;  // the only field that the kernel reads and writes
    take(datagram);
  }
  return received;
}

}  // namespace gpumeter::jobs
