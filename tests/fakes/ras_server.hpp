#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"

namespace gpumeter {

/// A connection of a client, within the server's thread.
class RasConnection {
 public:
  RasConnection(int number, const std::atomic<bool>& stops) : number_(number), stops_(stops) {}

  /// The next line without its end; empty: the client left, or the server stops.
  std::string line() {
    while (true) {
      if (const auto end = received_.find('\n'); end != std::string::npos) {
        std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return line;
      }
      pollfd waiting{number_, POLLIN, 0};
      char bytes[256];
      if (stops_) return "";
      if (::poll(&waiting, 1, 10) == 0) continue;
      const ssize_t count = ::recv(number_, bytes, sizeof bytes, 0);
      if (count <= 0) return "";
      received_.append(bytes, static_cast<std::size_t>(count));
    }
  }
  /// Returns false if the client left.
  bool say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(number_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool stops() const { return stops_; }

 private:
  int number_;
  const std::atomic<bool>& stops_;
  std::string received_;
};

/// A server on a loopback port of the kernel's choice, one connection after another. Counts connections.
class RasServer {
 public:
  using Serve = std::function<void(RasConnection&)>;

  explicit RasServer(Serve serve)
      : serve_(std::move(serve)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.number(), 8);
    ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~RasServer() {
    stops_ = true;
    thread_.join();
  }
  RasServer(const RasServer&) = delete;
  RasServer& operator=(const RasServer&) = delete;

  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }

  /// The documented protocol, as of NCCL 2.28.7; `document` is the answer to STATUS.
  static Serve documented(std::function<std::string()> document) {
    return [document = std::move(document)](RasConnection& client) {
      bool is_json = false;
      for (std::string line = client.line(); !line.empty(); line = client.line()) {
        if (line == "SET FORMAT json") {
          is_json = true;
          client.say("OK\n");
        } else if (line == "STATUS" || line == "VERBOSE STATUS") {
          client.say(is_json ? document() : "NCCL version 2.29.3 compiled with CUDA 13.0\n");
          return;
        } else {
          client.say("ERROR: Unknown command " + line + "\n");
        }
      }
    };
  }
  /// NCCL 2.24 to 2.28.6: text only.
  static Serve text_only() {
    return [](RasConnection& client) {
      for (std::string line = client.line(); !line.empty(); line = client.line()) {
        if (line == "STATUS")
          return static_cast<void>(client.say("NCCL version 2.26.2 compiled with CUDA 12.6\n"));
        client.say("ERROR: Unknown command " + line + "\n");
      }
    };
  }

 private:
  void run() {
    while (!stops_) {
      pollfd waiting{listener_.number(), POLLIN, 0};
      if (::poll(&waiting, 1, 10) <= 0) continue;
      const Descriptor client(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) continue;
      ++connections_;
      RasConnection connection(client.number(), stops_);
      serve_(connection);
    }
  }

  const Serve serve_;
  Descriptor listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stops_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace gpumeter
