#include "programs/servers/part.hpp"
#include "programs/service/service.hpp"

int main(int argc, char** argv) {
  return gpumeter::service::run({.name = "gpumeter-servers",
                                 .purpose = "Export the figures of model servers on this machine's GPUs.",
                                 .part = gpumeter::servers::kPart},
                                argc, argv);
}
