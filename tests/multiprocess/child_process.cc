#include "child_process.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>
#include <utility>

#include "trial.hpp"

namespace megamoe {
namespace {

void write_all(int file, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(file, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += static_cast<std::size_t>(written);
  }
}

}  // namespace

ChildProcess::ChildProcess(const std::function<std::string()>& work) : pid_(-1), pipe_(-1) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(ErrorCode::kInternal, "pipe");
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);
    std::string result;
    const std::string thrown = thrown_by([&] { result = work(); });
    write_all(ends[1], thrown == "nothing was thrown" ? result : thrown);
    _exit(0);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}

ChildProcess::~ChildProcess() {
  if (pipe_ >= 0) close(pipe_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void ChildProcess::kill(int signal) const {
  ::kill(pid_, signal);
}

std::string ChildProcess::result() {
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = read(pipe_, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : text;
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool is_running(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z" && state != "X";
}

SharedWord::SharedWord()
    : word_(static_cast<int*>(
          mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

SharedWord::~SharedWord() {
  munmap(word_, sizeof(int));
}

int SharedWord::get() const {
  return std::atomic_ref(*word_).load();
}

void SharedWord::set(int value) const {
  std::atomic_ref(*word_).store(value);
}

void SharedWord::add(int value) const {
  std::atomic_ref(*word_).fetch_add(value);
}

bool SharedWord::await(int value) const {
  return eventually([&] { return get() >= value; });
}

}  // namespace megamoe
