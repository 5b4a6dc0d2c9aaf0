#pragma once

#include <sys/socket.h>
// After sys/socket.h, which it needs.
#include <linux/vm_sockets.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"

/// Addresses between a virtual machine and its host, vsock(7): they need no network. Written as systemd does
/// in ListenStream= (systemd.socket(5)): "vsock:CID:PORT".
namespace gpumeter::vsock {

inline constexpr std::string_view kScheme = "vsock:";

/// Without a CID, as in "vsock::10478", every CID of this machine. Empty: not an address.
inline std::optional<sockaddr_vm> parse(std::string_view text) {
  if (!text.starts_with(kScheme)) return std::nullopt;
  text.remove_prefix(kScheme.size());
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view cid_text = text.substr(0, colon);
  const auto cid = cid_text.empty() ? VMADDR_CID_ANY : parse_number<std::uint32_t>(cid_text);
  const auto port = parse_number<std::uint32_t>(text.substr(colon + 1));
  if (!cid || !port || *port == VMADDR_PORT_ANY) return std::nullopt;
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = *cid;
  address.svm_port = *port;
  return address;
}

inline std::string text_of(const sockaddr_vm& address) {
  const std::string cid = address.svm_cid == VMADDR_CID_ANY ? "" : std::to_string(address.svm_cid);
  return std::string(kScheme) + cid + ":" + std::to_string(address.svm_port);
}

}  // namespace gpumeter::vsock
