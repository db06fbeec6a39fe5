// Package kubeparts is the kubelet's subsystems as packages of their own, for
// people who build node agents. This package holds no code: it tells the story
// of one pod, and draws how the packages hang together.
//
// # The story of one pod
//
// Somebody writes web.yaml into a directory. podsource sees the file, checks
// and completes it as an API server would, gives it the name, UID and
// annotations of a static pod, and hands the whole set of pods it now knows to
// its Merge, which compares it with the set before and says: added, web. In a
// cluster kube/client is a second source, of the pods that were bound to this node.
//
// podworker.Loop takes note that web is wanted, and podworker.Workers give it a
// life of its own, under its UID. As soon as pleg has looked at the runtime once
// the life begins: Sync.
//
// podworker.Pipeline is what a Sync does. It asks whether the pod may run here:
// eviction, whether the node has too little of something; allocation and admission,
// whether it fits; the managers below cm, whether there are the CPUs, the memory and
// the devices that it wants for itself. It lets status compute what can be said of
// the pod, which is Pending; cm makes its cgroup, with the limits that follow from
// its spec; volume gets its volumes ready, each by the plugin that knows its kind,
// from objects that kube/client has read, or a directory; it has prober watch over
// its containers, and it tells the runtime: SyncPod. imagegc holds the pod's images
// while that lasts. In runtime/cri plan.Compute, a pure function, finds that a
// sandbox and the first init container are due, and why, and the engine carries that
// out over the CRI, with the names, labels and log paths of the kubelet.
//
// The init container exits. pleg hears of it at once where the runtime gives
// hints, else at the next list. It inspects web, keeps what it saw, and tells the
// Loop, which makes web due again. The next Sync sees the exit and starts the
// server; the one after that sees it running, and status.Manager hands the
// status.StatusSink a pod that is Running, and Ready once prober's readiness
// probe has found it so; kube/client writes that into the mirror pod. From now on
// nothing happens for web but its probes, and that costs nothing else.
//
// A Secret that web shows is changed. kube/client sees it, volume.Manager is told and
// has the plugin write the files anew, in one step: no pod is synced for that.
//
// The server crashes. pleg, Loop, Sync: the plan starts it again, at once the
// first time, after 10 s the second (CrashLoopBackOff), and its restart count is
// in the labels and annotations of the containers, where a later agent finds it.
//
// The disk fills up. eviction reads in the summary of cm/stats that a threshold is
// met; it has imagegc delete the images that nobody uses, and where that is not
// enough it ranks the pods and ends the first: that one's status says Evicted and
// why, kube/node tells the cluster that the node is under pressure, and no pod is
// admitted that would make it worse.
//
// The file goes away. The Loop ends web's life: Terminate stops what runs, with
// TERM, the grace period, KILL; Cleanup unmounts the volumes, removes the cgroup and
// gives back the rest; the last status is delivered, the dead containers and their
// logs are collected, and web is forgotten.
//
// The agent is killed in the middle of all this. Nothing of the pod notices. The
// next agent reads the same files and the same runtime, gives web the same UID,
// finds its volumes mounted and its cgroup where it was, and goes on where the
// other one was.
//
// Somebody runs kubectl logs, exec or top. The API server asks kube/server, which asks
// kube/auth who that is and whether he may; runtime/cri/logread reads the log across its
// rotations, the runtime's own streams are passed on, and what kube/metrics has counted
// by the hooks of all packages is shown by the kubelet's names.
//
// The machine is about to stop. shutdown hears of it, from logind or whoever else knows,
// closes the node, ends the pods by their priority, and has the machine wait until the
// last status has been taken.
//
// # The import graph
//
// An arrow points at what is imported; there are no others, and a test in each
// package says so. runtime is the vocabulary of all. The parts in the first four
// rows do not import each other; the arrows into them are drawn.
//
//	runtime ◀── pleg  podsource  podworker  status  allocation  lives: what happens, who is wanted, what is done and said
//	        ◀── imagegc  eviction  cm  cm/stats  cm/oom         the node: images, pressure, cgroups, what is used
//	        ◀── prober ──▶ podenv                               whether containers are well
//	        ◀── volume                                          volumes of pods
//	admission ──▶ allocation                                    whether a pod fits a node: pure
//	podsource ──▶ podsource/manifest                            manifests, decoded, defaulted and validated
//
//	        ◀── shutdown ◀── shutdown/logind                    who ends when the machine stops; systemd tells
//
//	agent ──▶ pleg, podsource, podworker, status, prober, allocation   the pod pipeline assembled; nothing else assembles it
//	   ◀── agent/statuspage ──▶ eviction, imagegc, volume, cm/stats, runtime/cri   the state of an agent over HTTP
//	agent/claim                                                 one agent for a root directory and a runtime
//	status ◀── status/printer                                   statuses for a terminal
//
//	prober     ◀── prober/grpcprobe                             asks gRPC servers for their health
//	eviction   ◀┄┄ eviction/notify                              the kernel tells of memory; joined by an interface
//
//	volume ◀── volume/emptydir, secret, configmap, csi …        kinds of volumes, each a plugin
//	       ◀── volume/objectdir                                 ConfigMaps and Secrets from files
//	       ◀── volume/volumetest                                a mounter in memory, and the plugins' suite
//	       ◀── volume/payload ──▶ volume/atomic, podenv         files as values, and how they are written
//	volume/token, volume/csi/register                           tokens in time; plugins that announce themselves
//
//	cm, cm/stats ──▶ cm/cgroups ◀── cm/cgroups/host             cgroups as values, and those of this machine
//	cm/managers ──▶ cm/cpu, cm/memory, cm/device                joins the managers for a CRI runtime
//	        └── all of them ──▶ cm/topology, cm/state           the machine's shape, and records
//	cm/podresources ──▶ cm/device, cm/memory                    tells monitors who has what
//
//	runtime/cri ──▶ runtime/cri/plan                            what is due: pure
//	    │       ──▶ runtime/cri/podconfig ──▶ podenv            what the CRI is asked for: pure
//	    │       ──▶ runtime/cri/images                          pulls, and who may use what was pulled
//	    │       ──▶ runtime/cri/credentials                     what to pull with
//	    │       ──▶ allocation                                  the order of a resize
//	    ├── runtime/cri/remote                                  connects the engine to a socket
//	    ├── runtime/cri/streaming                               connects it to a runtime's streaming server
//	    ├── runtime/cri/streamserver                            serves such streams: runtime/cri/serve, kube/server
//	    ├── runtime/cri/userns                                  the host's IDs for user namespaces
//	    ├── runtime/cri/logrotate, logread                      keeps logs small; reads them across that
//	    ├── runtime/process                                     implements the CRI's Go interfaces
//	    ├── runtime/cri/fakecri                                 implements them in memory, for tests
//	    └── runtime/cri/serve                                   serves them on a socket
//	runtime/runtimetest                                         an in-memory Runtime, and the conformance suite
//	sim ──▶ agent, runtimetest                                  a node in virtual time, from a seed
//	   └── sim/simcri ──▶ runtime/cri, fakecri                  the same over the real engine
//	       sim/timeline                                         draws what happened; imports nothing of this house
//
//	kube/client ──▶ status, runtime                             pods, statuses, objects of an API server
//	kube/node ──▶ runtime                                       the node's object and lease
//	kube/certs, kube/auth                                       who the node is; who asks it
//	kube/server ──▶ kube/auth, runtime, logread                 the kubelet's API, an http.Handler
//	kube/metrics ──▶ whoever has hooks                          Prometheus collectors, in leaves by what they pull in
//	kube/fakenode ──▶ kube/client, kube/node, agent             nodes for tests of controllers. All of kube: a module of its own
//
//	internal/podspec     QoS class, restarts, amounts of a spec plan, podconfig, status, allocation, admission, eviction, cm, prober, volume
//	internal/checkpoint  records in files, whole or not there   who outlives an agent: allocation to volume/csi
//	internal/pause       waits, unless it is called off         eviction, logread, logrotate, runtimetest, sim
//	internal/quiet       keeps the CRI client off stderr        runtime/cri, images, remote
//	podenv               a container's environment              runtime/cri, podconfig, prober, volume/payload
//	internal/deptest     pins the arrows                        tests
//	internal/lab         real runtimes and clusters for tests   tests
//	internal/script      scenarios as text                      tests
//	internal/seedrun     a test over many seeds                 tests
//	internal/mutants     planted bugs that the laws must find   tests
//	internal/terminal    makes text safe to print               agent/statuspage, status/printer
//
//	kube/kubelet ──▶ agent and everything above                 the complete node; kube/kubelet/config reads its configuration
//
// # The seams
//
// Three interfaces are where you put your own: podsource.PodSource says which
// pods are wanted, runtime.Runtime runs them, status.StatusSink is told what
// became of them. Package agent assembles the parts between them, package kube/kubelet
// those of a complete node of a cluster, and examples/tiny uses two parts alone.
package kubeparts
