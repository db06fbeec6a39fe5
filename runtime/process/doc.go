// Package process is a CRI runtime of plain host processes: the embedded
// default of a node agent that has no container runtime. It needs no daemon,
// no root and no images.
//
// # It isolates nothing
//
// A container here is a process group on this host. It sees the host's files,
// users, processes and network; it can do to them whatever its user can. There
// is no image, no mount, no namespace, no cgroup, no resource limit, no
// seccomp, no capability set, no read-only root. A pod spec that asks for
// these gets none of them, silently; the exceptions, where something is refused
// or obeyed, are listed below. Run here what you would run from a shell
// or a systemd unit of the same user, and nothing you do not trust.
//
// # What it decides
//
// How a container is made of a process. [Runtime] implements the Go interfaces
// RuntimeService and ImageManagerService of k8s.io/cri-api; package
// runtime/cri builds pods from them as it does on containerd.
//
//	sandbox     a record; ready until it is stopped; has an address of
//	            127.0.0.0/8 of its own (macOS: 127.0.0.1), or none with hostNetwork
//	container   a command of the host, in a session and process group of its own
//	image       any name is "present" and stands for this host; pulling does nothing
//
// A container's command must exist on the host, and must be in its spec: there
// is no image whose entrypoint could be used. Otherwise CreateContainer fails
// and names the command, as it does for a terminal (tty), a working directory
// that does not exist, and a user that the agent cannot become. Obeyed are
// command and args, env, working directory, user and groups (an agent that is
// not root can only be itself), no_new_privs (Linux), the stop signal and the
// log path. A runtime handler (RuntimeClass) is refused, as who asks for one
// asks for isolation.
//
// The environment is what the spec says, and if it does not say them: PATH
// and HOME of the agent (HOME of the user, if another is asked for). Added are
// KUBEPARTS_CONTAINER_ID, by which stray processes are found, and
// KUBEPARTS_TERMINATION_LOG, the host's path of the file that would be mounted
// at the termination message path; a process that knows of it can leave its
// last words there, and the kubelet's way of reading them works. No other
// mount has an effect. The working directory, if none is named, is an empty
// one that is removed with the container.
//
// Processes listen on the host: two pods can use one port if each binds to its
// own address (take it from the downward API: status.podIP) and not to 0.0.0.0.
//
// # Usage
//
//	func main() {
//		if code, ok := process.Supervise(); ok { // must come first
//			os.Exit(code)
//		}
//		p, err := process.New(process.Config{Dir: "/var/lib/agent/process"})
//		...
//		defer p.Close(ctx)
//		rt, err := cri.New(cri.Config{Name: process.Name, Runtime: p, Images: p})
//		...
//	}
//
// # The supervisor
//
// Each running container has a supervisor: the agent's own program, executed
// again, which [Supervise] recognises. It starts the command, writes its
// output to the log in CRI's format, reaps it, kills what it left behind and
// records the exit. It needs no agent, so an agent can end, crash and be
// replaced while its containers run; the next Runtime on the directory finds
// them, and the exits that happened meanwhile. A supervisor costs one idle
// process of the agent's program.
//
// An agent under systemd needs KillMode=process (or a scope per supervisor),
// or systemd stops the containers with it. TERM sent to a supervisor is passed
// on to its container.
//
// When the main process ends, everything it started is killed, as when a PID
// namespace ends: on Linux all descendants, wherever they fled to; on macOS
// the process group.
//
// If a supervisor is itself killed (kill -9, the OOM killer), its container
// cannot go on: nobody reads its output, nobody would see its exit. So on
// Linux the main process is killed with it by the kernel, and the next look
// kills the rest, found by its environment, and records exit 137 with reason
// ContainerStatusUnknown. On macOS the look does the killing, of the group.
// To let an unsupervised process run on was the alternative; it would run
// without log and then vanish without an exit code, or hang on a full pipe.
//
// # Concurrency
//
// All methods may be called from many goroutines. There is no goroutine but
// those of calls under way: neither New nor a running container has one.
// Supervisors that have ended are reaped by the next look at their container;
// a list looks at all.
//
// # Guarantees and limits
//
//   - After a kill -9 of the agent at any moment, each process that runs is in
//     a running container of the next Runtime, and no container has run twice.
//     The FIFO that a supervisor holds from before its fork tells whether there
//     is one; process.json, written before the command starts, that the one
//     start was used up.
//   - A container of a sandbox with the same name and attempt is never made
//     twice (AlreadyExists), nor a sandbox with the same attempt of a pod.
//   - A PID is never signalled without a check that it still is the process it
//     was, by its start time and (Linux) the boot.
//   - A log line is written whole; lines longer than 16 KiB are split with the
//     tag P, as is the end of output without a newline. If the log cannot be
//     written, output is dropped, and the container runs on.
//   - A process that clears its environment and leaves its group survives the
//     kill of its supervisor. So does, on macOS, one that leaves its group at
//     any end.
//   - Exec'd commands are children of the agent, are not counted in stats, and
//     die with the agent on Linux.
//   - A container whose own record (container.json) is corrupt is in no list.
//     New logs the file and tells Hooks.Corrupt; its process, if there is one,
//     has the identifier in its environment.
//   - After a reboot of the host, what ran is found as ContainerStatusUnknown.
//   - Windows and other systems: New returns an error.
//
// Stats come from /proc and exist on Linux only: CPU time of all descendants,
// resident memory (shared pages are counted once per process), the size of the
// working directory.
//
// There is no streaming server: [Runtime.StreamExec] and
// [Runtime.StreamPortForward] have the streams in hand, and package runtime/cri
// finds them. Nobody can attach: a container has no input, and its output is in
// the log.
//
// Unimplemented, with a gRPC status that names the method: Exec, Attach and
// PortForward (they return a server's URL), resource updates, checkpoints,
// metric descriptors, RuntimeConfig and UpdateRuntimeConfig.
//
// # Differences from the kubelet
//
// It has no counterpart there; measured against containerd: TERM goes to the
// main process and KILL to the group, exit codes and reasons (Completed, Error,
// StartError with 128) are the same, no container is OOMKilled, and a user
// without a group in the spec or in /etc/passwd has the group of his own
// number instead of root's.
//
// # Testing
//
// Tests run real processes, kill real agents at random moments (the seed is
// printed), and need nothing but /bin/sh. A test binary that uses this package
// calls [Supervise] in TestMain.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package process
