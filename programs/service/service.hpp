#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/part.hpp"
#include "config/config.hpp"

/// The services: each is one part in a process of its own, with its own user, sandbox and
/// limits. Nothing that happens in it delays the daemon.
namespace gpumeter::service {

struct Program {
  const char* name;     ///< of the binary: "gpumeter-servers"
  const char* purpose;  ///< a sentence of --help
  /// Its section of gpumeter.yaml is that of the program. The part is opened again if a reload changes a
  /// key that it uses. An open() that returns null ends the program with status 0.
  const PartEntry& part;
};

/// Reads the sections from the file. Empty: the default file /etc/gpumeter/gpumeter.yaml, which need not
/// exist.
config::Loaded load_config(const std::string& file, const config::Schema& schema);

/// The main function of a program. After each turn of the part, all its series are a page of text 0.0.4 for
/// the daemon, NAME.prom in the folder of pages, which is replaced atomically and expires when turns stop.
/// SIGHUP reads the file again, SIGTERM and SIGINT remove the page and end the program. Returns the exit
/// status: 0, 1 (cannot work) or 2 (flags or configuration).
int run(const Program& program, int argc, char** argv);

// The answers of the daemon.

/// Publishes Machine::uses, and the runs of the processes on devices, from the body of /api/v1/processes.
Result<Done> take_processes(std::string_view json, Machine& machine);
/// Publishes the other facts of Machine::runs from the body of /api/v1/runs.
Result<Done> take_runs(std::string_view json, Machine& machine);

}  // namespace gpumeter::service
