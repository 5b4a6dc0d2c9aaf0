#include "daemon/bus/adapters.hpp"

namespace gpumeter {

void Bus::add(const pci::Function& adapter) {
  const std::string vendor(pci::vendor_word(adapter.vendor));
  const bool has_driver = pci::is_gpu_driver(adapter.driver);
  const bool lacks_driver = adapter.driver.empty() && vendor != "other";
  functions.push_back(adapter);
  if (has_driver) addresses.push_back(pci::to_string(adapter.address));
  if (has_driver || lacks_driver) ++by_vendor[vendor];
}

}  // namespace gpumeter
