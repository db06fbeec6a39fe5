// Package kubeparts is the kubelet's subsystems as packages of their own, for
// people who build node agents. This package holds no code: it tells the story
// of one pod, and draws how the packages hang together.
//
// # The story of one pod
//
// Somebody writes web.yaml into a directory. podsource sees the file, checks
// and completes it as an API server would, gives it the name, UID and
// annotations of a static pod, and hands the whole set of pods it now knows to
// its Merge, which compares it with the set before and says: added, web.
//
// podworker.Loop takes note that web is wanted, and podworker.Workers give it a
// life of its own, under its UID. As soon as pleg has looked at the runtime once
// the life begins: Sync.
//
// podworker.Pipeline is what a Sync does. It lets status compute what can be said
// of the pod, which is Pending; it would ask for its cgroup, where that part is
// wired; volume gets its volumes ready, each by the plugin that knows its kind; it
// has prober watch over its containers, and it tells the runtime: SyncPod. In runtime/cri
// plan.Compute, a pure function, finds that a sandbox and the first init
// container are due, and why, and the engine carries that out over the CRI, with
// the names, labels and log paths of the kubelet.
//
// The init container exits. pleg hears of it at once where the runtime gives
// hints, else at the next list. It inspects web, keeps what it saw, and tells the
// Loop, which makes web due again. The next Sync sees the exit and starts the
// server; the one after that sees it running, and status.Manager hands the
// status.StatusSink a pod that is Running, and Ready once prober's readiness
// probe has found it so. From now on nothing happens for web but its probes, and
// that costs nothing else.
//
// The server crashes. pleg, Loop, Sync: the plan starts it again, at once the
// first time, after 10 s the second (CrashLoopBackOff), and its restart count is
// in the labels and annotations of the containers, where a later agent finds it.
//
// The file goes away. The Loop ends web's life: Terminate stops what runs, with
// TERM, the grace period, KILL; Cleanup releases the rest; the last status is
// delivered, the dead containers and their logs are collected, and web is
// forgotten.
//
// The agent is killed in the middle of all this. Nothing of the pod notices. The
// next agent reads the same files and the same runtime, gives web the same UID,
// and goes on where the other one was.
//
// # The import graph
//
// An arrow points at what is imported; there are no others, and a test in each
// package says so. runtime is the vocabulary of all.
//
//	runtime ◀── pleg  podsource  podworker  status  allocation  they do not import each other
//	        ◀── prober ──▶ podenv                               nor does it import them
//	               ▲
//	               └── prober/grpcprobe                         asks gRPC servers for their health
//	        ◀── volume ◀── volume/emptydir, secret, csi …       kinds of volumes, each a plugin
//	               ▲
//	               └── volume/volumetest                        a mounter in memory, and the plugins' suite
//	admission                                                   whether a pod fits a node: pure, imports none of them
//	eviction                                                    who has to go when a node runs out: pure, with a thin shell
//	   ▲
//	   └── runtime/cri ──▶ runtime/cri/plan                     what is due: pure
//	           │       ──▶ runtime/cri/podconfig ──▶ podenv     what the CRI is asked for: pure
//	           │       ──▶ runtime/cri/images                   pulls, and who may use what was pulled
//	           │       ──▶ runtime/cri/credentials              what to pull with
//	           │       ──▶ allocation                           the order of a resize
//	           ├── runtime/cri/remote                           connects the engine to a socket
//	           ├── runtime/cri/streaming                        connects it to a runtime's streaming server
//	           ├── runtime/cri/userns                           the host's IDs for user namespaces
//	           ├── runtime/process                              implements the CRI's Go interfaces
//	           ├── runtime/cri/fakecri                          implements them in memory, for tests
//	           └── runtime/cri/serve                            serves them on a socket
//	       runtime/runtimetest                                  an in-memory Runtime, and the conformance suite
//	sim ──▶ runtimetest, pleg, podsource, podworker, status     a node in virtual time, from a seed
//	   └── sim/simcri ──▶ runtime/cri, fakecri                  the same over the real engine
//	       sim/timeline                                         draws what happened; imports nothing of this house
//
//	internal/restart     what follows an exit                   plan, status, allocation
//	internal/staticpod   the marks of a static pod              podsource, podworker, status, admission, eviction
//	internal/qos         quality of service class, CPU shares   podconfig, plan, status, allocation, admission, eviction
//	internal/checkpoint  records in files, whole or not there   allocation, runtime/cri, images, userns
//	podenv               a container's environment              runtime/cri, podconfig
//	internal/quiet       keeps the CRI client off stderr        runtime/cri, runtime/cri/remote
//	internal/deptest     pins the arrows                        tests
//	internal/lab         real runtimes for tests                tests
//	internal/script      scenarios as text                      tests
//	internal/seedrun     a test over many seeds                 tests
//	internal/mutants     planted bugs that the laws must find   tests
//
//	examples/agent  ──▶ everything                              a module of its own
//
// # The seams
//
// Three interfaces are where you put your own: podsource.PodSource says which
// pods are wanted, runtime.Runtime runs them, status.StatusSink is told what
// became of them. Everything between is parts that you wire as you like;
// examples/agent wires all of them, and examples/tiny two.
package kubeparts
