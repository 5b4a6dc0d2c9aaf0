// Lists as Docker 20.10.24 and Podman 4.3.1 of Debian 12 gave them; tests/interop/containers_test.py asks a
// running Docker.
#include "collectors/containers/part.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/descriptor.hpp"
#include "tests/fakes/places.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::containers {
namespace {

std::string recorded(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(places::in_tests("fuzz/corpus/containers/" + name)).rdbuf();
  return text.str();
}

/// "ID-PREFIX image name" of each container.
std::vector<std::string> lines(std::string_view list) {
  const auto names = parse_list(list);
  if (!names) return {names.error().message()};
  std::vector<std::string> lines;
  for (const auto& [key, labels] : names->labels) {
    std::string line = key.id.substr(0, 8);
    for (const Label& label : labels) line += " " + label.name + "=" + label.value;
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(ContainersTest, TheListsOfBothEnginesNameTheirContainers) {
  EXPECT_EQ(lines(recorded("docker")),
            (Lines{"75b006bf container_image=registry.example/bench:1.0 container_name=t2",
                   "c5a357d8 container_image=registry.example/bench:1.0 container_name=trainer"}));
  const Lines podman = {"514f3e7c container_image=localhost/bench:1.0 container_name=trainer2",
                        "e471687a container_image=localhost/bench:1.0 container_name=trainer"};
  EXPECT_EQ(lines(recorded("podman")), podman);
  EXPECT_EQ(lines(recorded("podman_ps")), podman);
}

TEST(ContainersTest, WhatAnEntryLacksIsLeftOut) {
  EXPECT_EQ(lines(recorded("nulls")), Lines{"a container_image=b"});
  EXPECT_EQ(lines(R"([{"Id":"a","Names":["/x\ny"],"Image":""}])"), Lines{"a container_name=x\uFFFDy"});
  EXPECT_EQ(lines("[]"), Lines{});
  EXPECT_EQ(lines(recorded("no_list")), Lines{"the answer is no list of containers"});
  EXPECT_EQ(lines("[{"), Lines{"the answer is no list of containers"});
}

/// The error of read_list() at a socket whose server answers with these bytes and closes the connection; or
/// what it read.
std::string read_from_server(const std::string& bytes) {
  const Tree tree = make_tree({});
  const std::string path = tree / "engine.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Descriptor server(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(server.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(server.number(), 1), 0);
  std::thread answering([&] {
    const Descriptor client(accept(server.number(), nullptr, nullptr));
    std::array<char, 100> asked{};
    EXPECT_GT(recv(client.number(), asked.data(), asked.size(), 0), 0);
    EXPECT_EQ(std::string(asked.data()), "GET /containers/json HTTP/1.0\r\n\r\n");
    EXPECT_EQ(send(client.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  });
  const auto list = read_list(path, kRealClock);
  answering.join();
  return list ? *list : list.error().message();
}

TEST(ContainersTest, ASocketIsAskedByHttp) {
  EXPECT_EQ(read_from_server("HTTP/1.0 200 OK\r\nServer: Docker/20.10.24+dfsg1 (linux)\r\n\r\n[]\n"), "[]\n");
  EXPECT_EQ(read_from_server("HTTP/1.0 403 Forbidden\r\n\r\n"), "the answer is HTTP/1.0 403 Forbidden");
  EXPECT_EQ(read_from_server("HTTP/1.0 200 OK\r\nServer: Do"), "the answer ends within its headers");
  EXPECT_EQ(read_from_server("SSH-2.0-OpenSSH_9.2\r\n"), "the answer is SSH-2.0-OpenSSH_9.2");
}

TEST(ContainersTest, AFileIsReadOnlyIfNobodyElseMayChangeIt) {
  const Tree tree = make_tree({{"podman.json", "[]"}});
  EXPECT_EQ(*read_list(tree / "podman.json", kRealClock), "[]");
  EXPECT_EQ(read_list(tree / "docker.json", kRealClock).error().message(), "No such file or directory");
  std::filesystem::create_symlink("podman.json", tree / "link.json");
  EXPECT_EQ(read_list(tree / "link.json", kRealClock).error().message(),
            "it is no socket, and no file of the owner of its folder");
  std::filesystem::permissions(tree.path(), std::filesystem::perms::all);
  EXPECT_FALSE(read_list(tree / "podman.json", kRealClock));
}

}  // namespace
}  // namespace gpumeter::containers
