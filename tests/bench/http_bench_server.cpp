#include <microhttpd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "exporter/http/server.hpp"
#include "exporter/listen/socket.hpp"
#include "exporter/text/format.hpp"
#include "tests/bench/sample_series.hpp"

// Runs two servers in one process for http_bench.py, on ports that the kernel chooses. The first is the
// exporter with 8 lanes that commit each second. The second is libmicrohttpd, with the bytes of the same page
// as a static body (and gzipped on /gzip). Both use the same number of threads. Prints both ports and serves
// until its input closes.
// usage: bench_http_server SERIES FORMAT(text|openmetrics)
namespace gpumeter::bench {
namespace {

constexpr unsigned kThreads = 2;

struct StaticBodies {
  MHD_Response* identity;
  MHD_Response* gzip;
};

MHD_Response* static_body(const std::string& bytes, std::string_view type) {
  MHD_Response* response =
      MHD_create_response_from_buffer(bytes.size(), const_cast<char*>(bytes.data()), MHD_RESPMEM_MUST_COPY);
  MHD_add_response_header(response, "Content-Type", std::string(type).c_str());
  return response;
}

MHD_Result serve_static(void* cls, MHD_Connection* connection, const char* path, const char*, const char*,
                        const char*, std::size_t*, void** request) {
  if (*request == nullptr) {
    *request = connection;
    return MHD_YES;
  }
  const auto* bodies = static_cast<const StaticBodies*>(cls);
  const bool gzipped = std::string_view(path) == "/gzip";
  return MHD_queue_response(connection, 200, gzipped ? bodies->gzip : bodies->identity);
}

void commit_each_second(std::vector<Source>& sources) {
  for (double tick = 0;; ++tick) {
    for (Source& source : sources) {
      source.set(0, tick);
      source.commit({});
      std::this_thread::sleep_for(std::chrono::milliseconds(1000 / kDevices));
    }
  }
}

int run(std::size_t count, Format format) {
  const SampleSeries series(count);
  Store store;
  std::vector<Source> sources = series.attach_to(store);
  PageCache pages(store);
  Routes routes(pages, store, {.web = {.max_requests = 0}});
  auto listening = listen_on("127.0.0.1:0");
  auto second = listen_on("127.0.0.1:0");
  if (!listening || !second) return 1;
  auto server = HttpServer::start(std::move(listening->sockets), routes, kThreads);
  if (!server) return 1;

  const std::string page = TextView(store).render(format).text;
  StaticBodies bodies{static_body(page, "text/plain"), static_body(*gzip(page), "text/plain")};
  ListenSocket& socket = second->sockets[0];
  MHD_Daemon* baseline = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, serve_static, &bodies,
      MHD_OPTION_LISTEN_SOCKET, socket.descriptor(), MHD_OPTION_THREAD_POOL_SIZE, kThreads, MHD_OPTION_END);
  if (baseline == nullptr) return 1;

  std::thread([&] { commit_each_second(sources); }).detach();
  std::printf("%u %u %zu\n", static_cast<unsigned>((*server)->endpoints()[0].port()),
              static_cast<unsigned>(socket.endpoint().port()), page.size());
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  std::_Exit(0);  // the committing thread never ends
}

}  // namespace
}  // namespace gpumeter::bench

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const bool openmetrics = std::string_view(arguments[2]) == "openmetrics";
  return gpumeter::bench::run(std::strtoul(arguments[1], nullptr, 10),
                              openmetrics ? gpumeter::Format::openmetrics : gpumeter::Format::text);
}
