// A process that holds the minimum of any NVML client: the library, and the handles of all GPUs. Its memory,
// minus that of the same program without a library, is the fake's own. Runs until its input ends.
#include <dlfcn.h>

#include <cstdio>

#include "collectors/nvidia/nvml/abi.hpp"

int main(int argc, char** argv) {
  if (argc > 1) {
    void* const library = ::dlopen(argv[1], RTLD_NOW);
    if (library == nullptr) return std::fprintf(stderr, "%s\n", ::dlerror()), 1;
    const auto init = reinterpret_cast<unsigned (*)()>(::dlsym(library, "nvmlInit_v2"));
    const auto count_of =
        reinterpret_cast<unsigned (*)(unsigned*)>(::dlsym(library, "nvmlDeviceGetCount_v2"));
    const auto handle_of = reinterpret_cast<unsigned (*)(unsigned, gpumeter::nvidia::nvml::Device*)>(
        ::dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
    unsigned count = 0;
    if (init() != 0 || count_of(&count) != 0) return 1;
    for (unsigned i = 0; i < count; ++i) {
      gpumeter::nvidia::nvml::Device device = nullptr;
      if (handle_of(i, &device) != 0) return 1;
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}
