#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "base/result.hpp"
#include "collectors/api/part.hpp"
#include "collectors/attribution/names/name_book.hpp"

/// Names and images of the containers of Docker and Podman, whose control groups have only their ids.
namespace gpumeter::containers {

/// Empty: no engine is asked. Whoever may open an engine's socket is root on the machine, so the daemon never
/// looks for one by itself.
struct Settings {
  std::vector<std::string> sources;  ///< sockets of engines, and files of root's with an engine's list
  bool operator==(const Settings&) const = default;
};

/// The labels container_image and container_name by the container's id. `list`: the answer to GET
/// /containers/json of Docker's API, which Podman has too, or what `podman ps --format json` prints: an array
/// of objects with Id, Names and Image. Any bytes, any thread.
Result<workloads::Names> parse_list(std::string_view list);

/// The list of a source. Blocks for 2 s at most at a socket, and as the file system does at a file. Error:
/// others than root may change the file, or the engine answered anything but a list.
Result<std::string> read_list(const std::string& source, const Clock& clock);

/// `containers` in the configuration.
extern const options::Section kSection;

/// Asks the sources when a container without a name uses a device, and once a minute while one uses any.
extern const PartEntry kPart;

}  // namespace gpumeter::containers
