#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace megamoe {

/// A process forked from this one, that does `work` and tells what came of it.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<std::string()>& work);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(ChildProcess&&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int signal) const;

  /// What `work` returned, or what it threw as thrown_by() says it; "signal 9" for a killed one.
  std::string result();

 private:
  pid_t pid_;
  int pipe_;
};

/// Waits until the condition holds; false when it doesn't within ten seconds.
bool eventually(const std::function<bool()>& condition);

/// Whether a process is there and no zombie.
bool is_running(pid_t pid);

/// Memory that this process and its children share: a word to signal by.
class SharedWord {
 public:
  SharedWord();
  ~SharedWord();
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;

  int get() const;
  void set(int value) const;
  void add(int value) const;
  bool await(int value) const;

 private:
  int* word_;
};

}  // namespace megamoe
