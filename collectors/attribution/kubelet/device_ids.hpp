#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/attribution/kubelet/pod.hpp"
#include "collectors/attribution/names/name_book.hpp"

namespace gpumeter::kubelet {

/// Returns the PCI address of a DRM card, such as "card1"; nullopt: there is no such card.
using CardAddress = std::function<std::optional<std::string>(std::string_view card)>;

/// Reads the link <sysfs>/class/drm/CARD/device.
CardAddress card_addresses(std::string sysfs);

/// The GPU of a device id, by the conventions of the device plugins of NVIDIA, GKE, AMD and Intel and of
/// NVIDIA's DRA driver. nullopt: no GPU, a device for monitoring, which
/// is not use, or an id that the node cannot resolve. Any thread; may call `address_of`.
std::optional<workloads::DeviceSelector> selector_of(const GivenDevice& device,
                                                     const CardAddress& address_of);

}  // namespace gpumeter::kubelet
