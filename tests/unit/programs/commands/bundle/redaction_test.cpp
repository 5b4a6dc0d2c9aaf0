#include "programs/commands/bundle/redaction.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter::bundle {
namespace {

constexpr std::string_view kDocuments = "| `gpu_up` | the memory of a gpu, by video |";

TEST(RedactionTest, TheSameIdentityIsReplacedByTheSameInEveryForm) {
  Redaction redaction(kDocuments);
  redaction.add_identity("GPU-8f3a1c22-0b6d-4e51-9a77-c0ffee123456");
  redaction.add_number(0x946d7e1ef9b172ddU);
  redaction.add_identity("946d7e1ef9b172dd");
  redaction.add_identity("1650522008123");
  EXPECT_EQ(
      redaction.identities_in("uuid=\"GPU-8f3a1c22-0b6d-4e51-9a77-c0ffee123456\" "
                              "MIG-GPU-8F3A1C22-0B6D-4E51-9A77-C0FFEE123456/1/0"),
      "uuid=\"GPU-00000000-0000-0000-0000-000000000001\" MIG-GPU-00000000-0000-0000-0000-000000000001/1/0");
  EXPECT_EQ(
      redaction.identities_in("GPU-946d7e1ef9b172dd 0x946D7E1EF9B172DD unique_id 10695343361578070749\n"),
      "GPU-0000000000000002 0x0000000000000002 unique_id 2\n");
  EXPECT_EQ(redaction.identities_in("serial=\"1650522008123\""), "serial=\"0000000000003\"");
  EXPECT_EQ(redaction.identities(), 3U);
}

TEST(RedactionTest, AnIdentityInALongerOneAndInANumberDoesNotDestroyThem) {
  Redaction redaction(kDocuments);
  redaction.add_identity("1650522008123");
  redaction.add_identity("ABCD1650522008123EFG");
  redaction.add_identity("42");
  EXPECT_EQ(redaction.identities_in("ABCD1650522008123EFG 1650522008123 1650522008123.5 71650522008123"),
            "00000000000000000002 0000000000001 0000000000001.5 71650522008123");
  EXPECT_EQ(redaction.identities_in("gpu_power_watts{serial=\"42\",gpu=\"42\"} 42\nserial: \"42\"\n"),
            "gpu_power_watts{serial=\"03\",gpu=\"42\"} 42\nserial: \"03\"\n");
}

TEST(RedactionTest, AReplacementIsNotReplacedAgain) {
  Redaction redaction(kDocuments);
  redaction.add_user("anna");
  redaction.add_user("user1");
  EXPECT_EQ(redaction.all_in("anna user1"), "user1 user2");
}

TEST(RedactionTest, WhatTellsNothingStays) {
  Redaction redaction(kDocuments);
  for (const char* const value : {"", "0", "N/A", "0000:0c:00.0", "00000000-0000-0000-0000-000000000000"})
    redaction.add_identity(value);
  for (const char* const name : {"root", "1000", "nobody"}) redaction.add_user(name);
  redaction.add_host("localhost");
  EXPECT_EQ(redaction.identities() + redaction.names(), 0U);
  EXPECT_EQ(redaction.all_in("root 1000 localhost 0 N/A 0000:0c:00.0"),
            "root 1000 localhost 0 N/A 0000:0c:00.0");
}

TEST(RedactionTest, ANameThatIsAWordOfThePageIsReplacedOnlyWhereItIsAName) {
  Redaction redaction(kDocuments);
  redaction.add_user("gpu");
  redaction.add_user("video");
  redaction.add_host("a");
  EXPECT_EQ(redaction.all_in("gpu_workload_info{gpu=\"0\",user=\"gpu\",engine=\"video\"} 1\n"),
            "gpu_workload_info{gpu=\"0\",user=\"user1\",engine=\"video\"} 1\n");
  EXPECT_EQ(redaction.all_in("level=info a gpu of host=a user=video read /home/gpu/a.log"),
            "level=info a gpu of host=host1 user=user2 read /home/user1/a.log");
}

TEST(RedactionTest, NamesStandAsWordsAndNeverInFilesOfDevices) {
  Redaction redaction(kDocuments);
  redaction.add_user("anna");
  redaction.add_host("node17.example.org");
  redaction.add_host("node17");
  redaction.add_secret("s3cr3t-token");
  EXPECT_EQ(redaction.all_in("Susanna anna's job-anna on NODE17.example.org and node17, Bearer s3cr3t-token"),
            "Susanna user1's job-user1 on host1 and host2, Bearer REDACTED");
  EXPECT_EQ(redaction.identities_in("anna node17"), "anna node17");
}

TEST(RedactionTest, ThePagesLabelsAreSources) {
  Redaction redaction(kDocuments);
  redaction.add_labels_of(
      "# HELP gpu_up serial=\"HELP-12345\"\n"
      "gpu_info{gpu=\"0\",uuid=\"GPU-11112222-3333-4444-5555-666677778888\",serial=\"0324818123456\"} 1\n"
      "gpu_workload_info{kind=\"session\",user=\"zoe\"} 1\n");
  EXPECT_EQ(redaction.all_in("GPU-11112222-3333-4444-5555-666677778888 0324818123456 zoe HELP-12345"),
            "GPU-00000000-0000-0000-0000-000000000001 0000000000002 user1 HELP-12345");
}

TEST(RedactionTest, ValuesOfVariablesAreReplacedInTheirLabelsAlone) {
  Redaction redaction(kDocuments);
  const std::string page =
      "gpu_workload_info{gpu=\"0\",env_owner=\"anna\",env_project=\"gpu\",user=\"anna\"} 1\n"
      "gpu_workload_info{gpu=\"1\",env_project=\"a\\\"b=\\\\\",env_rate=\"0.5\",user=\"1000\"} 0.5\n"
      "gpu_workload_info{gpu=\"2\",env_name=\"gpu\",env_project=\"anna's\"} 1\n";
  redaction.add_labels_of(page);
  EXPECT_EQ(redaction.all_in(page),
            "gpu_workload_info{gpu=\"0\",env_owner=\"user1\",env_project=\"value2\",user=\"user1\"} 1\n"
            "gpu_workload_info{gpu=\"1\",env_project=\"value3\",env_rate=\"value4\",user=\"1000\"} 0.5\n"
            "gpu_workload_info{gpu=\"2\",env_name=\"value2\",env_project=\"value5\"} 1\n");
  EXPECT_EQ(redaction.all_in("anna read environment.gpu of rate=\"0.5\""),
            "user1 read environment.gpu of rate=\"0.5\"");
}

}  // namespace
}  // namespace gpumeter::bundle
