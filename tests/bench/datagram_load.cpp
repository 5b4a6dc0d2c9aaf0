// Senders and a bare receiver of Unix datagrams for jobs_fairness.py and jobs_rates.py. Senders never wait;
// each prints how many messages found room, how many did not, and the seconds.
//
// clang-format off
//   datagram_load flood PATH SECONDS SOCKETS    as fast as it can, in turns over its sockets, each with the largest send buffer
//   datagram_load default PATH SECONDS SOCKETS  the same with the default send buffers
//   datagram_load paced PATH SECONDS RATE       RATE a second, evenly; it polls the clock between two messages
//   datagram_load steady PATH SECONDS RUN       100 a second
//   datagram_load receive                       a loop of recvmmsg() on descriptor 3 that does nothing else, until SIGTERM
// clang-format on
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

volatile sig_atomic_t stopped = 0;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

int connected(const std::string& path, bool is_large) {
  constexpr int kLargest = 1 << 30;  // the kernel cuts it to net.core.wmem_max
  const int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  if (is_large) setsockopt(out, SOL_SOCKET, SO_SNDBUF, &kLargest, sizeof kLargest);
  const sockaddr_un address = address_of(path);
  if (connect(out, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    perror("connect");
    exit(1);
  }
  return out;
}

int send_all(const std::vector<int>& outs, const std::string& line, double seconds,
             std::chrono::microseconds pause) {
  long sent = 0;
  long lost = 0;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    const int count = pause.count() > 0 ? 1 : 64;
    for (int i = 0; i < count; ++i) {
      const int out = outs[static_cast<std::size_t>(sent + lost) % outs.size()];
      ++(send(out, line.data(), line.size(), 0) < 0 ? lost : sent);
    }
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
  printf("%ld %ld %.3f\n", sent, lost, std::chrono::duration<double>(Clock::now() - begin).count());
  return 0;
}

/// One message in each interval. A late message (the sender lost the processor) delays all that follow: the
/// sender never catches up by a burst, so the rate stays at or below the offered one.
int send_paced(int out, const std::string& line, double seconds, double rate) {
  const auto gap = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate));
  long sent = 0;
  long lost = 0;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(seconds);
  auto due = begin;
  for (auto now = begin; now < end; now = Clock::now()) {
    if (now < due) continue;
    due = std::max(due, now - gap) + gap;
    ++(send(out, line.data(), line.size(), 0) < 0 ? lost : sent);
  }
  printf("%ld %ld %.3f\n", sent, lost, std::chrono::duration<double>(Clock::now() - begin).count());
  return 0;
}

int receive() {
  constexpr unsigned kBatch = 64;
  constexpr std::size_t kLargest = 65'536;
  signal(SIGTERM, [](int) { stopped = 1; });
  constexpr int kSocket = 3;
  std::vector<char> bytes(kBatch * kLargest);
  std::array<std::array<char, 128>, kBatch> controls{};
  std::array<iovec, kBatch> parts{};
  std::array<mmsghdr, kBatch> messages{};
  long count = 0;
  while (stopped == 0) {
    for (unsigned i = 0; i < kBatch; ++i) {
      parts[i] = {bytes.data() + i * kLargest, kLargest};
      messages[i].msg_hdr = {};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_control = controls[i].data();
      messages[i].msg_hdr.msg_controllen = controls[i].size();
    }
    const int got = recvmmsg(kSocket, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (got > 0) {
      count += got;
      continue;
    }
    pollfd ready{kSocket, POLLIN, 0};
    poll(&ready, 1, 100);
  }
  printf("%ld\n", count);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> given(arguments + 1, arguments + count);
  if (given.size() == 1 && given[0] == "receive") return receive();
  if (given.size() != 4) return 2;
  const double seconds = atof(given[2].c_str());
  if (given[0] == "steady") {
    return send_all({connected(given[1], false)}, "ml.steps:1|c|#run:" + given[3], seconds,
                    std::chrono::milliseconds(10));
  }
  if (given[0] == "paced") {
    return send_paced(connected(given[1], false), "ml.steps:1|c|#run:flood", seconds, atof(given[3].c_str()));
  }
  std::vector<int> outs;
  for (int i = 0; i < atoi(given[3].c_str()); ++i) outs.push_back(connected(given[1], given[0] == "flood"));
  return send_all(outs, "ml.steps:1|c|#run:flood", seconds, {});
}
