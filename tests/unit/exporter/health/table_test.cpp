#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "exporter/health/conditions.hpp"
#include "exporter/health/xids.hpp"

namespace gpumeter::health {
namespace {

TEST(ConditionTable, EveryRowIsComplete) {
  for (const Condition& condition : all_conditions()) {
    SCOPED_TRACE(std::string(condition.reason));
    EXPECT_FALSE(condition.text.empty());
    EXPECT_TRUE(condition.alert.starts_with("Gpu"));
    EXPECT_NE(condition.terms[0].reading.family, nullptr);
    for (const Term& term : condition.terms) {
      const bool looks_back = term.over != Over::now || term.compare == Compare::below_usual;
      EXPECT_EQ(looks_back, term.window > std::chrono::seconds(0));
      EXPECT_FALSE(term.over == Over::rise && term.reading.family->type != MetricType::counter);
      EXPECT_FALSE(term.over == Over::event && term.reading.family->type != MetricType::counter);
    }
  }
}

TEST(ConditionTable, VariantsOfAReasonHaveOneAlert) {
  std::map<std::string_view, std::string_view> alerts;
  for (const Condition& condition : all_conditions()) {
    EXPECT_EQ(alerts.try_emplace(condition.reason, condition.alert).first->second, condition.alert);
  }
}

TEST(ConditionTable, SaysItsTestInWords) {
  EXPECT_EQ(test_text(conditions()[0]), "gpu_up < 1 and highest gpu_suspended < 1");
  EXPECT_EQ(runbook_of(conditions()[0]), "gpulost");
}

TEST(XidTable, HasEachCodeOnceInOrder) {
  int last = 0;
  for (const Xid& xid : xids()) {
    const int code = xid.code == "other" ? 10000 : std::stoi(std::string(xid.code));
    EXPECT_GT(code, last);
    last = code;
  }
}

TEST(XidTable, ACodeThatNeedsNobodyIsNoFinding) {
  std::set<std::string> reasons;
  for (const Condition& condition : xid_conditions()) reasons.insert(std::string(condition.reason));
  for (const Xid& xid : xids()) {
    SCOPED_TRACE(std::string(xid.code));
    EXPECT_EQ(xid.is_finding, reasons.contains("xid_" + std::string(xid.code)));
    EXPECT_FALSE(xid.kind == XidClass::noise && xid.is_finding);
    EXPECT_FALSE(xid.kind == XidClass::immediate && !xid.is_finding);
  }
}

}  // namespace
}  // namespace gpumeter::health
