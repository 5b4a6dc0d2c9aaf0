#include "collectors/jobs/model/run_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

TEST(RunModel, OneRunFromStartToStop) {
  JobsBench jobs;
  jobs.send(10, "_e{9,8}:run_start|resnet50|t:info|#framework:torch,version:2.7,model:resnet");
  jobs.wait(100);
  jobs.send(10,
            "ml.steps:1|c\nml.step:1|g\nml.samples:256|c\nml.loss:2.5|g\nml.phase.seconds:0.5:0.25|d|#phase:"
            "data_loading\n");
  jobs.send(10, "ml.target:0.759|g|#metric:top1,direction:max\nml.eval:0.71|g|#metric:top1\n");
  jobs.wait(50);
  jobs.send(10, "ml.eval:0.76|g|#metric:top1\n");
  jobs.wait(50);
  jobs.send(10, "ml.eval:0.75|g|#metric:top1\n_e{8,7}:run_stop|success");
  jobs.wait(3);
  EXPECT_EQ(jobs.page(), R"(ml_run_start_timestamp_seconds{run="resnet50",user="alice"} 1700000000
ml_run_stop_timestamp_seconds{run="resnet50",user="alice",status="success"} 1700000200
ml_run_time_seconds{run="resnet50",user="alice"} 200
ml_last_update_timestamp_seconds{run="resnet50",user="alice"} 1700000200
ml_run_restarts_total{run="resnet50",user="alice"} 0
ml_lost_steps_total{run="resnet50",user="alice"} 0
ml_step{run="resnet50",user="alice"} 1
ml_run_info{run="resnet50",user="alice",framework="torch",version="2.7",model="resnet"} 1
ml_eval_value{run="resnet50",user="alice",metric="top1"} 0.75
ml_eval_best_value{run="resnet50",user="alice",metric="top1"} 0.76
ml_target_value{run="resnet50",user="alice",metric="top1"} 0.759
ml_time_to_solution_seconds{run="resnet50",user="alice",metric="top1"} 150
ml_steps_total{run="resnet50",user="alice",split="train"} 1
ml_samples_total{run="resnet50",user="alice",split="train"} 256
ml_loss{run="resnet50",user="alice",split="train"} 2.5
ml_phases_total{run="resnet50",user="alice",phase="data_loading"} 2
ml_phase_seconds_total{run="resnet50",user="alice",phase="data_loading"} 0.75
)");
  EXPECT_EQ(jobs.dropped(), "");
}

TEST(RunModel, AFactStaysUntilAnotherIsReported) {
  JobsBench jobs;
  jobs.send(10, "_e{9,1}:run_start|a|d:1700000000|#run:a,framework:pytorch,precision:bf16");
  jobs.send(10, "_e{9,1}:run_start|a|d:1700000000|#run:a,data_parallel:8,sharding:fsdp");
  jobs.send(11, "_e{9,1}:run_start|a|d:1700000000|#run:a");
  jobs.send(11, "_e{9,1}:run_start|a|d:1700000000|#run:a,precision:ternary,tensor_parallel:0,model:llama");
  EXPECT_EQ(jobs.page({"ml_run_info"}),
            "ml_run_info{run=\"a\",user=\"alice\",framework=\"pytorch\",model=\"llama\",precision=\"bf16\","
            "sharding=\"fsdp\",data_parallel=\"8\"} 1\n");
  EXPECT_EQ(jobs.dropped(), "bad_label=2 ");
  jobs.send(10, "_e{8,7}:run_stop|success|d:1700000000|#run:a");
  jobs.send(11, "_e{8,7}:run_stop|success|d:1700000000|#run:a");
  jobs.wait(10);
  jobs.send(12, "_e{9,1}:run_start|a|d:1700000010|#run:a,framework:jax");
  EXPECT_EQ(jobs.page({"ml_run_info"}), "ml_run_info{run=\"a\",user=\"alice\",framework=\"jax\"} 1\n");
}

TEST(RunModel, AllocatorMemoryIsTheSumOfLiveProcesses) {
  JobsBench jobs;
  const std::set<std::string_view> families = {"ml_allocator_memory_bytes", "ml_out_of_memory_errors_total"};
  const auto line = [](std::string_view state, std::string_view value) {
    return "ml_allocator_memory_bytes{run=\"a\",user=\"alice\",state=\"" + std::string(state) + "\"} " +
           std::string(value) + '\n';
  };
  const std::string ooms = "ml_out_of_memory_errors_total{run=\"a\",user=\"alice\"} ";
  jobs.send(10,
            "ml.memory:100|g|#run:a,state:allocated\nml.memory:300|g|#run:a,state:peak\nml.oom:0|c|#run:a");
  jobs.send(11, "ml.memory:70|g|#run:a,state:allocated\nml.memory:80|g|#run:a\nml.oom:2|c|#run:a");
  EXPECT_EQ(jobs.page(families), line("allocated", "180") + line("peak", "300") + ooms + "2\n");
  jobs.send(12, "ml.memory:5|g|#run:a,state:allocated\n_e{8,7}:run_stop|success|#run:a");
  jobs.kill(10);
  EXPECT_EQ(jobs.page(families), line("allocated", "80") + ooms + "2\n") << "one has stopped, one was killed";
  jobs.send(11, "ml.memory:-1|g|#run:a\nml.memory:1|g|#run:a,state:cached\nml.memory:1|c|#run:a");
  EXPECT_EQ(jobs.page(families), line("allocated", "80") + ooms + "2\n");
  EXPECT_EQ(jobs.dropped(), "bad_value=1 wrong_type=1 bad_label=1 ");
  jobs.kill(11);
  EXPECT_EQ(jobs.page(families), ooms + "2\n");
}

TEST(RunModel, AHistogramIsCumulativeAndWeighsByTheSamplingRate) {
  JobsBench jobs;
  jobs.send(10,
            "ml.infer.seconds:0.003:0.004|d|#run:serve\nml.infer.seconds:2000|ms|@0.5|#run:serve\nml.infer."
            "seconds:400|h|#run:serve");
  const std::string page = jobs.page({"ml_inference_duration_seconds"});
  EXPECT_EQ(std::ranges::count(page, '\n'), 179 + 3) << "with the bounds that classic histograms leave out";
  const auto has = [&](const std::string& line) {
    return page.find("ml_inference_duration_seconds" + line + '\n') != std::string::npos;
  };
  const auto bucket = [&](const std::string& bound, int count) {
    return has("_bucket{run=\"serve\",user=\"alice\",le=\"" + bound + "\"} " + std::to_string(count));
  };
  EXPECT_TRUE(bucket("0.0009765625", 0) && bucket("0.002762135864009951", 0));
  EXPECT_TRUE(bucket("0.0030121305183748843", 1) && bucket("0.00390625", 1));
  EXPECT_TRUE(bucket("0.004259795830723663", 2) && bucket("1.8340080864093422", 2) && bucket("2.0", 4));
  EXPECT_TRUE(bucket("394.80597130443283", 4) && bucket("430.53896460990177", 5) && bucket("+Inf", 5));
  EXPECT_TRUE(has("_sum{run=\"serve\",user=\"alice\"} 404.007"));
  EXPECT_TRUE(has("_count{run=\"serve\",user=\"alice\"} 5"));
}

TEST(RunModel, ATracedDurationIsTheExemplarOfItsBucket) {
  JobsBench jobs;
  const std::string trace = ",trace_id:4bf92f3577b34da6a3ce929d0e0e473";  // and a digit
  jobs.send(10, "ml.infer.seconds:0.003:0.5|d|#run:serve" + trace + "1\nml.infer.seconds:500|ms|#run:serve" +
                    trace +
                    "2\nml.infer.seconds:0.003|d|#run:serve\nml.infer.seconds:1|d|#run:serve,trace_id:7\n"
                    "ml.loss:1|g|#run:serve" +
                    trace + "3");
  jobs.tick();
  std::string found;
  jobs.store.walk([&](const Family& family) {
    family.for_each([&](const Series& series) {
      const Exemplar* const exemplar = series.exemplar();
      if (exemplar == nullptr) return;
      EXPECT_EQ(exemplar->time, to_seconds(jobs.now.unix));
      found += std::string(series.labels().pairs().back().second) + " " + std::to_string(exemplar->value) +
               " " + exemplar->trace_id.back() + "\n";
    });
  });
  EXPECT_EQ(found, "0.0030121305183748843 0.003000 1\n0.5 0.500000 2\n");
  EXPECT_EQ(jobs.dropped(), "");
}

TEST(RunModel, CountersAreScaledByTheSamplingRateAndGaugesAreNot) {
  JobsBench jobs;
  jobs.send(10, "ml.samples:32:32|c|@0.25|#run:a\nml.loss:3:2|g|@0.25|#run:a");
  EXPECT_EQ(jobs.page({"ml_samples_total", "ml_loss"}),
            R"(ml_samples_total{run="a",user="alice",split="train"} 256
ml_loss{run="a",user="alice",split="train"} 2
)");
}

TEST(RunModel, UsersWithTheSameRunNameStayApart) {
  JobsBench jobs;
  jobs.send(10, "ml.steps:1|c|#run:a", 1000);
  jobs.send(11, "ml.steps:5|c|#run:a", 1001);
  EXPECT_EQ(jobs.page({"ml_steps_total"}), R"(ml_steps_total{run="a",user="alice",split="train"} 1
ml_steps_total{run="a",user="bob",split="train"} 5
)");
}

TEST(RunModel, LinesWithoutATagBelongToTheSendersRun) {
  JobsBench jobs;
  jobs.send(10, "ml.steps:1|c");  // like plain statsd
  jobs.send(11, "_e{9,1}:run_start|b\nml.steps:2|c");
  jobs.send(11, "_e{9,1}:run_start|x|#run:c\nml.steps:4|c\nml.steps:8|c|#run:b");
  EXPECT_EQ(jobs.page({"ml_steps_total"}), R"(ml_steps_total{run="b",user="alice",split="train"} 10
ml_steps_total{run="c",user="alice",split="train"} 4
ml_steps_total{run="unnamed",user="alice",split="train"} 1
)");
}

TEST(RunModel, LastValuesStayTenMinutesAfterTheLastSender) {
  JobsBench jobs;
  jobs.send(10, "ml.step:5|g|#run:a");
  jobs.wait(5000);  // silent, but alive
  EXPECT_EQ(jobs.page({"ml_step", "ml_run_time_seconds"}),
            "ml_run_time_seconds{run=\"a\",user=\"alice\"} 5000\nml_step{run=\"a\",user=\"alice\"} 5\n");
  jobs.kill(10);
  jobs.wait(599);
  EXPECT_EQ(jobs.page({"ml_step", "ml_run_time_seconds"}),
            "ml_run_time_seconds{run=\"a\",user=\"alice\"} 0\nml_step{run=\"a\",user=\"alice\"} 5\n");
  EXPECT_EQ(jobs.model.usage().processes, 0U);
  EXPECT_EQ(jobs.model.runs().processes.size(), 0U);
  jobs.wait(1);
  EXPECT_EQ(jobs.page(), "");
  EXPECT_EQ(jobs.model.usage().series, 0U);
  EXPECT_EQ(jobs.model.usage().users, 0U);
}

TEST(RunModel, AStoppedRunOfALivingProcessLeavesAfterTenMinutesToo) {
  JobsBench jobs;
  jobs.send(10, "_e{9,1}:run_start|a\nml.steps:1|c\n_e{8,7}:run_stop|success\n_e{9,1}:run_start|b");
  jobs.wait(600);
  EXPECT_EQ(jobs.page({"ml_run_restarts_total"}), "ml_run_restarts_total{run=\"b\",user=\"alice\"} 0\n");
  EXPECT_EQ(jobs.model.usage().series, kSeriesOfEveryRun);
  EXPECT_EQ(jobs.model.usage().members, 1U);
}

TEST(RunModel, ASenderWithoutAPidIsGoneAfterTenMinutesOfSilence) {
  JobsBench jobs;
  jobs.send(0, "ml.step:5|g|#run:a");
  jobs.wait(599);
  jobs.page();
  EXPECT_EQ(jobs.model.usage().processes, 1U);
  jobs.wait(1);
  jobs.page();
  EXPECT_EQ(jobs.model.usage().processes, 0U);
}

TEST(RunModel, TheListNamesTheProcessesOfARun) {
  JobsBench jobs;
  jobs.send(10, "ml.steps:1|c|#run:a");
  jobs.send(11, "ml.steps:1|c|#run:a");
  jobs.page();
  const RunList list = jobs.model.runs();
  ASSERT_EQ(list.processes.size(), 2U);
  EXPECT_EQ(list.processes[1].id.pid, 11);
  EXPECT_EQ(list.processes[1].run, (RunName{"alice", "a"}));
}

TEST(RunModel, EachRefusalIsCounted) {
  JobsBench jobs;
  jobs.send(10,
            "nonsense\nml.steps:1:nan:-1:1e19|c\nml.steps:1e10|c|@1e-10\nother.metric:1|c\nml.steps:1|g\nml."
            "steps:1|c|#split:x\n"
            "_e{4,1}:what|x\n_e{8,4}:run_stop|done\nml.step:1|g|T1699996399\nml.step:1|g|T1700003600\n"
            "_sc|ok|0\ndatadog.dogstatsd.client.metrics:1|c");
  EXPECT_EQ(jobs.dropped(),
            "malformed=1 bad_value=4 bad_timestamp=1 unknown_metric=2 wrong_type=1 bad_label=2 ");
  EXPECT_EQ(jobs.page({"ml_steps_total"}),
            "ml_steps_total{run=\"unnamed\",user=\"alice\",split=\"train\"} 1\n");
}

TEST(RunModel, ViewsReadWhileLinesComeIn) {
  JobsBench jobs;
  std::atomic<bool> stop = false;
  std::atomic<int> backwards = 0;
  std::jthread reader([&] {
    for (double last = 0; !stop;) {
      for (const PageLine& line : lines_of(jobs.store)) {
        if (line.family != "ml_steps_total") continue;
        if (line.value < last) ++backwards;
        last = line.value;
      }
    }
  });
  for (int i = 0; i < 1000; ++i) {
    jobs.send(10, "ml.steps:1|c|#run:a");
    jobs.tick();
  }
  stop = true;
  reader.join();
  EXPECT_EQ(backwards, 0);
  EXPECT_EQ(jobs.page({"ml_steps_total"}), "ml_steps_total{run=\"a\",user=\"alice\",split=\"train\"} 1000\n");
}

}  // namespace
}  // namespace gpumeter::jobs
