#include "daemon/web/web_config.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace gpumeter {
namespace {

namespace fs = std::filesystem;

const std::string kDave = "dave: $2y$10$2UXri9cIDdgeKjBo4Rlpx.U3ZLDV8X1IxKmsfOvhcM5oXQt/mLmXq";

class WebConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpumeter-web-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    file_ = fs::path(name) / "web.yml";
  }
  void TearDown() override { fs::remove_all(file_.parent_path()); }

  void write(const std::string& text) {
    std::ofstream(file_.string() + ".new") << text;
    fs::rename(file_.string() + ".new", file_);
  }
  std::unique_ptr<WebConfig> open() {
    auto opened = WebConfig::open(file_, clock_, log_);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? *std::move(opened) : nullptr;
  }
  static std::size_t users(WebConfig& web) { return web.access().current()->settings.users.size(); }

  const SystemClock clock_;
  Log log_{clock_, {.level = LogLevel::error}};
  fs::path file_;
};

TEST_F(WebConfigTest, ABadFileIsAnErrorAtTheStart) {
  EXPECT_EQ(WebConfig::open(file_, clock_, log_).error().message(),
            file_.string() + ": cannot be read: No such file or directory");
  write("nonsense: 1\n");
  EXPECT_TRUE(WebConfig::open(file_, clock_, log_)
                  .error()
                  .message()
                  .starts_with(file_.string() + ":1: nonsense: unknown key"));
}

TEST_F(WebConfigTest, TheCertificateIsCheckedBesideTheRest) {
  write(
      "basic_auth_users: {dave: x}\n\ntls_server_config: {cert: C, key: K, client_ca: A, client_auth_type: "
      "RequestClientCert}\n");
  const auto problems = load_generation(file_).file.problems;
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_TRUE(problems[0].text.starts_with("hashedSecret too short"));
  EXPECT_EQ(problems[1].line, 3);
  EXPECT_TRUE(problems[1].text.starts_with("certificate: ")) << problems[1].text;
  EXPECT_NE(problems[1].text.find("; client CA: "), std::string::npos) << problems[1].text;
}

TEST_F(WebConfigTest, ABadFileLaterKeepsTheOldState) {
  write("");
  const auto web = open();
  EXPECT_EQ(users(*web), 0U);
  EXPECT_TRUE(web->last_reload().is_successful);
  write("basic_auth_users: {" + kDave + "}\n");
  EXPECT_EQ(web->reload(), std::vector<std::string>());
  EXPECT_EQ(users(*web), 1U);
  const auto good = web->access().current();
  const Nanoseconds loaded_at = web->last_reload().loaded_at;
  write("basic_auth_users: {dave: x}\n");
  EXPECT_EQ(web->reload(), std::vector<std::string>{
                               file_.string() + ":1: basic_auth_users.dave: hashedSecret too short to be a "
                                                "bcrypted password"});
  EXPECT_EQ(web->access().current(), good);
  EXPECT_FALSE(web->last_reload().is_successful);
  EXPECT_EQ(web->last_reload().loaded_at, loaded_at);
  write("basic_auth_users: {" + kDave + "}\n# a comment\n");
  EXPECT_EQ(web->reload(), std::vector<std::string>());
  EXPECT_EQ(web->access().current(), good) << "equal settings are no new generation";
  EXPECT_TRUE(web->last_reload().is_successful);
  fs::remove(file_);
  EXPECT_EQ(web->reload(),
            std::vector<std::string>{file_.string() + ": cannot be read: No such file or directory"});
  EXPECT_EQ(web->access().current(), good);
}

// A link is exchanged as an orchestrator exchanges a secret.
TEST_F(WebConfigTest, TheThreadSeesAReplacedFileAndAnExchangedLink) {
  write("");
  const auto web = open();
  ASSERT_TRUE(web->start());
  std::ofstream(file_.parent_path() / "linked") << "basic_auth_users: {" + kDave + "}\n";
  for (const std::size_t wanted : {1U, 0U, 1U, 0U}) {
    write(wanted == 1 ? "basic_auth_users: {" + kDave + "}\n" : "");
    for (int i = 0; i < 2000 && users(*web) != wanted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(users(*web), wanted);
  }
  fs::create_symlink("linked", file_.string() + ".new");
  fs::rename(file_.string() + ".new", file_);
  for (int i = 0; i < 2000 && users(*web) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(users(*web), 1U);
  EXPECT_TRUE(web->stop(clock_.monotonic() + std::chrono::seconds(20)));
}

}  // namespace
}  // namespace gpumeter
