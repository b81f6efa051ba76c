#include "tests/isolation/fake_gpu.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "search/trial_json.h"

namespace gemmtune {
namespace {

using nlohmann::json;

void log_line(const std::string& op, const char* what) {
  const char* path = std::getenv("FAKE_GPU_LOG");
  if (path == nullptr) return;
  std::ofstream(path, std::ios::app) << fmt::format(
      "{} {} {} {}\n", ::getpid(), op, what, std::chrono::steady_clock::now().time_since_epoch().count());
}

std::string next_canary() {
  const char* path = std::getenv("FAKE_GPU_CANARY");
  if (path == nullptr) return "100";
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) return "100";
  std::ofstream rest(path);
  for (size_t i = 1; i < lines.size(); ++i) rest << lines[i] << "\n";
  return lines[0];
}

void misbehave(const std::string& how, Channel& channel) {
  if (how == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  if (how == "stop") ::raise(SIGSTOP);
  if (how == "die") {
    ::signal(SIGSEGV, SIG_DFL);  // not the sanitizers' handler, which exits
    ::raise(SIGSEGV);
  }
  if (how == "garbage") {
    const char bytes[] = "\x04\0\0\0\xff\xff\xff\xff";
    [[maybe_unused]] ssize_t written = ::write(channel.fd(), bytes, 8);
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

json answer(const json& request, std::map<int, std::string>& loaded, Channel& channel) {
  std::string op = request.at("op");
  json reply = {{"outcome", "ok"}, {"lost", false}};
  if (op == "canary") {
    std::string rate = next_canary();
    misbehave(rate, channel);
    reply["wrong"] = rate == "wrong" ? "1 of 16 elements" : "";
    reply["tflops"] = rate == "wrong" ? 100.0 : std::stod(rate);
    return reply;
  }
  if (op == "prepare") loaded[request.at("handle")] = from_blob(request.at("cubin"));
  if (!request.contains("handle")) return reply;
  const std::string& kernel = loaded.at(request.at("handle"));
  size_t at = kernel.find(" at " + op);
  if (at != std::string::npos) {
    std::string how = kernel.substr(0, at);
    misbehave(how, channel);
    if (how == "wrong") return {{"outcome", "wrong_result"}, {"lost", false}, {"message", "1 element wrong"}};
    if (how == "lost") return {{"outcome", "crashed"}, {"lost", true}, {"message", "illegal address"}};
  }
  if (op == "validate") {
    ValidationCase passed;
    passed.shape = {8, 8, 8};
    reply["validation"] = Validation{ValidatedBy::gpu, {passed}};
  }
  if (op == "graph") reply["plain_us"] = reply["graph_us"] = 10.0;
  if (op == "sample") {
    Sample sample;
    sample.time_us = 10;
    sample.launches = 100;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    reply["sample"] = sample;
  }
  return reply;
}

}  // namespace

int run_fake_gpu(Channel channel) {
  json request;
  if (!channel.receive(request)) return 0;
  DeviceRecord device{"GPU-fake", "NVIDIA H200", "sm_90a", 132, 60 << 20, 0, "CUDA 13.0"};
  channel.send({{"device", device}, {"support", to_blob("support")}});
  std::map<int, std::string> loaded;
  while (channel.receive(request)) {
    std::string op = request.at("op");
    log_line(op, "begin");
    json reply = answer(request, loaded, channel);
    log_line(op, "end");
    if (!channel.send(reply)) break;
    if (reply.at("lost").get<bool>()) ::_exit(0);
  }
  return 0;
}

}  // namespace gemmtune
