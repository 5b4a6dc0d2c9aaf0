#include "tests/unit/exporter/http/server_fixture.hpp"

namespace gpumeter {
namespace {

using HttpRequests = HttpServerTest;

TEST_F(HttpRequests, AnswersOnceToAContentLengthThatIsNoNumber) {
  for (const char* length : {"abc", "-1", "+1", "1,1", "0x10", ""}) {
    EXPECT_EQ(ask("GET /metrics", std::string("Content-Length: ") + length + "\r\n"),
              "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 32\r\n"
              "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\r\n"
              "Content-Length is not a number.\n")
        << length;
  }
  const std::string refusal = "A request body is not allowed.\n";
  EXPECT_EQ(body_of(ask("GET /metrics", "Content-Length: 99999999999999999999999\r\n")), refusal);
  EXPECT_EQ(body_of(ask("GET /metrics", "Content-Length: 0\r\nContent-Length: 5\r\n")), refusal);
  EXPECT_EQ(body_of(ask("GET /metrics", "Content-Length: 0\r\nContent-Length: 0\r\n")), kUpPage);
}

TEST_F(HttpRequests, RefusesMoreThan64ArgumentsAndAnswersToAnyNumber) {
  const auto ask_with = [&](int arguments) {
    std::string line = "GET /metrics?collect[]=amd";
    for (int i = 1; i < arguments; ++i) line += "&collect[]=amd";
    return ask(line);
  };
  EXPECT_EQ(body_of(ask_with(64)), kUpPage);
  for (const int arguments : {65, 200, 300, 1000}) {
    EXPECT_EQ(body_of(ask_with(arguments)), "More than 64 arguments are not allowed.\n") << arguments;
  }
  EXPECT_EQ(status_of(ask("GET /?" + std::string(15000, 'x'))), "HTTP/1.1 414 URI Too Long");
  EXPECT_EQ(status_of(ask("GET /" + std::string(15000, 'x'))), "HTTP/1.1 414 URI Too Long");
}

TEST_F(HttpRequests, AnswersWithTheLongestArgumentsThatItTakes) {
  std::string line = "GET /metrics?x=1";
  while (line.size() < 4096) line += "&" + std::string(69, 'y');
  EXPECT_EQ(body_of(ask(line.substr(0, 4 + 4096), "X: " + std::string(4000, 'z') + "\r\n")), kUpPage);
}

TEST_F(HttpRequests, CountsWhatTheLibraryRefuses) {
  ask("GET /" + std::string(40000, 'x'));
  ask("GET /", "X: " + std::string(40000, 'x') + "\r\n");
  ask("GET /", "no colon\r\n");
  ask("GET /?" + std::string(100, '&'));
  EXPECT_EQ(counts(), "400: 2\n414: 1\n431: 1\n");
}

TEST_F(HttpRequests, RefusesRequestsThatAProxyMayReadDifferently) {
  using namespace std::string_literals;
  const auto first_line = [&](const std::string& request) {
    Client client(endpoint());
    client.send(request);
    return status_of(client.receive_all());
  };
  const std::string bad = "HTTP/1.1 400 Bad Request";
  const std::string line = "GET /metrics HTTP/1.1\r\n", host = "Host: x\r\n", end = "\r\n";
  const std::string all_bad[] = {
      line + end,                                       // no Host
      line + host + host + end,                         // two
      line + host + "Content-Length : 5\r\n\r\nhello",  // a space before the colon
      line + host + "X\t: y\r\n" + end,
      line + host + ": y\r\n" + end,
      line + " X: y\r\n" + host + end,
      line + host + "X: y\r\n folded\r\n" + end,
      line + "Host: x\nX: a\r\n" + end,
      line + "Host: x\rX: a\r\n" + end,
      line + host + "X: a\0b\r\n"s + end,
      line + "X: a\0b\r\n"s + host + end,
      line + "X: a\0\r\n"s + host + end,
      line + host + "X\0: a\r\n"s + end,
      line + host + "\0X: y\r\n"s + end,
      line + host + "X: a\x01" + "b\r\n" + end,
      "GET /metrics\0 HTTP/1.1\r\n"s + host + end,
      "GET /metrics HTTP/1.1\0\r\n"s + host + end,
      "GET /metrics%00 HTTP/1.1\r\n" + host + end,  // the library would end the path here
      "GET /metrics%00x HTTP/1.1\r\n" + host + end,
      "GET %00/metrics HTTP/1.1\r\n" + host + end,
      "GET /metrics?collect[]=amd%00x HTTP/1.1\r\n" + host + end,
      "GET /met rics HTTP/1.1\r\n" + host + end,
      "GET /metrics FOO/1.1\r\n" + host + end,
      "GET /metrics\r\n" + host + end,
  };
  for (const std::string& request : all_bad) EXPECT_EQ(first_line(request), bad) << request;
  EXPECT_EQ(counts(), "400: " + std::to_string(std::size(all_bad)) + "\n");
  EXPECT_EQ(first_line("GET /metrics HTTP/2.0\r\n" + host + end), "HTTP/1.1 505 HTTP Version Not Supported");
  EXPECT_EQ(counts(), "400: " + std::to_string(std::size(all_bad)) + "\n505: 1\n");
}

/// An escape is decoded once, and one that is none stays as it is.
TEST_F(HttpRequests, DecodesEscapesOfThePathOnce) {
  EXPECT_EQ(body_of(ask("GET /%6detrics")), kUpPage);
  EXPECT_EQ(body_of(ask("GET /metrics?collect%5B%5D=amd")), kUpPage);
  for (const char* path :
       {"/metrics%", "/metrics%0", "/metrics%0g", "/metrics%2500", "/%256detrics", "/metrics%01",
        "/metrics%20", "/metrics%0a", "/metrics%2f", "/metrics%3fx=1", "/metrics%c0%80", "/metrics%u0000",
        "/%2e/metrics", "/x/../metrics", "//metrics"}) {
    EXPECT_EQ(status_of(ask(std::string("GET ") + path)), "HTTP/1.1 404 Not Found") << path;
  }
}

TEST_F(HttpRequests, TakesUnusualButClearRequests) {
  for (const char* request :
       {"GET /metrics HTTP/1.0\r\n\r\n", "GET /metrics HTTP/1.0\n\n", "GET /metrics HTTP/1.0\nHost: x\n\n",
        "\r\nGET /metrics HTTP/1.0\r\nhost:\r\nX:  a\tb \r\n\r\n",
        "GET /metrics HTTP/1.0\r\nX: \xc3\xa4\r\nCookie: a=b; c\r\n\r\n"}) {
    Client client(endpoint());
    client.send(request);
    EXPECT_EQ(body_of(client.receive_all()), kUpPage) << request;
  }
}

}  // namespace
}  // namespace gpumeter
