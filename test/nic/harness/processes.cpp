// SPDX-License-Identifier: BSD-3-Clause
#include "nic/harness/processes.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

namespace unisono::nic::test {

int Child::wait() {
  int status = 0;
  if (pid_ < 0 || waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int Child::end(int signal) {
  if (pid_ < 0) return -1;
  kill(pid_, signal);
  return wait();
}

void Child::stop() const {
  kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

StartedDaemon start_daemon(const Hosts& hosts, int host, const std::string& socket_path,
                           const std::vector<std::string>& more) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {{}, "no pipe"};
  std::vector<std::string> words = {"unisonod", "--interface", "u0", "--socket", socket_path};
  words.insert(words.end(), more.begin(), more.end());
  const pid_t pid = fork();
  if (pid == 0) {
    hosts.enter(host);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    dup2(ends[1], STDERR_FILENO);
    execv(UNISONOD_PROGRAM, arguments.data());
    _exit(127);
  }
  close(ends[1]);
  StartedDaemon started{Child(pid), ""};
  char byte = 0;
  while (read(ends[0], &byte, 1) == 1 && byte != '\n') started.said += byte;
  close(ends[0]);
  return started;
}

Child run_as(uid_t user, const Hosts& hosts, int host, const std::function<int()>& body) {
  return run_as(user, hosts, host, {}, body);
}

Child run_as(uid_t user, const Hosts& hosts, int host, const std::vector<gid_t>& groups,
             const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    hosts.enter(host);
    if (setgroups(groups.size(), groups.data()) != 0 || setgid(user) != 0 || setuid(user) != 0) {
      _exit(99);
    }
    _exit(body());
  }
  return Child(pid);
}

}  // namespace unisono::nic::test
