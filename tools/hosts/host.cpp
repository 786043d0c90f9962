// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.hpp"
#include "hosts/answer.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Status;
using base::success;

// A file in the host's own memory, bound over /etc/hosts and then without a name of its own.
Status bind_hosts_file(const std::string& text) {
  constexpr const char* kSource = "/dev/shm/hosts";
  {
    const Descriptor file(open(kSource, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.valid() ||
        write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return base::system_error("/etc/hosts of a host", errno);
    }
  }
  if (mount(kSource, "/etc/hosts", nullptr, MS_BIND, nullptr) != 0)
    return base::system_error("bind /etc/hosts", errno);
  unlink(kSource);
  return success();
}

Status make_mounts(const std::string& hosts_file) {
  // Mounts made here stay here; mounts of the machine are visible here too.
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return base::system_error("mount --make-rslave", errno);
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return base::system_error("mount /proc", errno);
  }
  if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0) {
    return base::system_error("mount /dev/shm", errno);
  }
  // /sys/class/net shows the network of the process that mounted it.
  if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return base::system_error("mount /sys", errno);
  }
  // For pinned BPF objects; without kernel support everything else still works.
  mount("bpf", "/sys/fs/bpf", "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700");
  return bind_hosts_file(hosts_file);
}

Status become_host(const std::string& name, const std::string& hosts_file) {
  if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET) != 0) {
    return Error{Code::unsupported,
                 fmt::format("this machine does not let us make namespaces: unshare: {}",
                             std::strerror(errno))};
  }
  if (sethostname(name.data(), name.size()) != 0) return base::system_error("sethostname", errno);
  return make_mounts(hosts_file);
}

[[noreturn]] void hold(const std::string& name, const std::string& hosts_file,
                       base::Descriptor answer) {
  const Status made = become_host(name, hosts_file);
  send_answer(answer, made);
  if (!made.ok()) _exit(1);
  answer.reset();
  for (;;) pause();
}

}  // namespace

base::Result<pid_t> start_host(const std::string& name, const std::string& hosts_file) {
  UNISONO_ASSIGN(AnswerPipe answer, make_answer_pipe());
  const pid_t pid = fork();
  if (pid < 0) return base::system_error("fork", errno);
  if (pid == 0) hold(name, hosts_file, std::move(answer.writing));
  answer.writing.reset();
  UNISONO_TRY(receive_answer(answer.reading, fmt::format("host {}", name)));
  return pid;
}

}  // namespace unisono::tools
