// Package process is a CRI runtime that runs containers as plain processes of
// the host. It is for a node agent without a container runtime: it requires no
// daemon, no root and no images.
//
// # No isolation
//
// A container is a process group of this host. It has access to the host's
// files, users, processes and network with the rights of its user. There is no
// image, mount, namespace, cgroup, resource limit, seccomp profile, capability
// set or read-only root; a pod spec that requests them silently gets none of
// them, with the exceptions listed below. Run only what you would run from a
// shell or a systemd unit of the same user, and nothing that is not trusted.
//
// # Mapping
//
// [Runtime] implements the Go interfaces RuntimeService and ImageManagerService
// of k8s.io/cri-api; package runtime/cri builds pods on them as it does on
// containerd.
//
//	sandbox     a record; ready until it is stopped; has an address of its own in
//	            127.0.0.0/8 (macOS: 127.0.0.1), or none with hostNetwork
//	container   a command of the host, in a session and process group of its own
//	image       any name is present and stands for this host; pulling does nothing
//
// A container's command must exist on the host and must be in its spec, because
// there is no image with an entrypoint. Otherwise CreateContainer fails with an
// error that names the command. It also fails for a terminal (tty), a working
// directory that does not exist, and a user that the agent cannot switch to.
// Supported are command and args, env, working directory, user and groups (an
// agent that is not root can only use its own), no_new_privs (Linux), the stop
// signal and the log path. A runtime handler (RuntimeClass) is rejected, because
// it requests isolation.
//
// The environment is specified by the spec, with defaults for PATH and HOME from the
// agent (HOME of the user, if the spec has one). Added are KUBEPARTS_CONTAINER_ID,
// by which stray processes are found, and KUBEPARTS_TERMINATION_LOG, the host
// path of the file that would be mounted at the termination message path; a
// process can write its termination message there. No other mount has an effect.
// If no working directory is specified, it is an empty one that is removed with
// the container.
//
// Processes listen on the host: two pods can use the same port if each binds to
// its own address (status.podIP of the downward API) and not to 0.0.0.0.
//
// # Usage
//
//	func main() {
//		if code, ok := process.Supervise(); ok { // must come first
//			os.Exit(code)
//		}
//		p, err := process.Open(process.Config{Dir: "/var/lib/agent/process"})
//		...
//		defer p.Close(ctx)
//		rt, err := cri.New(cri.Config{Name: process.Name, Runtime: p, Images: p})
//		...
//	}
//
// # The supervisor
//
// Each running container has a supervisor process: the agent's own program,
// executed again, which [Supervise] detects. It starts the command, writes its
// output to the log in the CRI format, reaps it, kills its remaining descendants
// and records the exit. It does not need the agent, so the agent can stop, crash
// and be replaced while containers run; the next Runtime on the directory finds
// the containers and the exits that happened in between. A supervisor costs one
// idle process of the agent's program.
//
// An agent under systemd needs KillMode=process (or a scope per supervisor);
// otherwise systemd stops the containers with it. SIGTERM sent to a supervisor
// is forwarded to its container.
//
// When the main process exits, everything it started is killed, as at the end
// of a PID namespace: on Linux all descendants, on macOS the process group.
//
// If a supervisor itself is killed (kill -9, the OOM killer), its container
// cannot continue, because its output is not read and its exit would not be
// recorded. On Linux the kernel kills the main process with it, and the next
// inspection kills the remaining processes, found by their environment, and
// records exit code 137 with reason ContainerStatusUnknown. On macOS the
// inspection kills the group. An unsupervised process would run without a log
// and exit without an exit code, or block on a full pipe.
//
// # Concurrency
//
// All methods are safe for concurrent use. There are no goroutines except those
// of calls in progress. Terminated supervisors are reaped by the next inspection
// of their container; a list inspects all of them.
//
// # Guarantees and limits
//
//   - After a kill -9 of the agent at any moment, each running process belongs
//     to a running container of the next Runtime, and no container has run
//     twice. A FIFO that a supervisor holds from before its fork shows whether
//     it is alive; process.json, written before the command starts, shows that
//     the container was started.
//   - A container of a sandbox with the same name and attempt is never created
//     twice (AlreadyExists), nor a sandbox with the same attempt of a pod.
//   - A process is signalled only after a check that the PID is still its PID, by
//     its start time and (Linux) the boot ID.
//   - A log line is written with one write; lines longer than 16 KiB are split
//     with the tag P, as is the end of output without a newline. If the log
//     cannot be written, output is dropped and the container continues.
//   - A process that clears its environment and leaves its group survives the
//     kill of its supervisor; on macOS one that leaves its group always does.
//   - Exec'd commands are children of the agent, are not counted in stats, and
//     die with the agent on Linux.
//   - A container whose record (container.json) is corrupt is not listed. Open
//     logs the file; its process, if any, has the container ID in its
//     environment.
//   - After a reboot of the host, containers that were running have the reason
//     ContainerStatusUnknown.
//   - Windows and other systems: Open returns an error.
//
// Stats are read from /proc on Linux only: CPU time of all descendants, resident
// memory (shared pages are counted once per process), the size of the working
// directory.
//
// There is no streaming server: [Runtime.StreamExec] and
// [Runtime.StreamPortForward] use the caller's streams, and package runtime/cri
// calls them. Attach is not possible: a container has no input, and its output
// is in the log.
//
// Unimplemented, with a gRPC status that names the method: Exec, Attach and
// PortForward (they return a server's URL), resource updates, checkpoints,
// metric descriptors, RuntimeConfig and UpdateRuntimeConfig.
//
// # Differences from the kubelet
//
// It has no counterpart in the kubelet. As in containerd, SIGTERM goes to the
// main process and SIGKILL to the group, and exit codes and reasons (Completed,
// Error, StartError with 128) are the same. Unlike in containerd, no container is
// OOMKilled, and a user without a group in the spec or in /etc/passwd gets the
// group with the same number instead of root's.
//
// # Testing
//
// Tests run real processes, kill real agents at random moments (the seed is
// printed), and need only /bin/sh. A test binary that uses this package calls
// [Supervise] in TestMain.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package process
