// Package kubeparts is the root of a module with the subsystems of the kubelet as packages.
// It contains no code. This page describes the lifecycle of one pod through the packages,
// and the import graph.
//
// # The lifecycle of a pod
//
// A file web.yaml is created in the manifest directory. podsource decodes, defaults and
// validates it as an API server would, and gives the pod the name, UID and annotations of a
// static pod. It passes the complete set of its pods to podsource.Merge, which compares it
// with the previous set and reports that web was added. In a cluster kube/client is a second
// source, with the pods that are bound to the node.
//
// podworker.Loop adds web to the desired pods, and podworker.Workers create a worker for its
// UID. After the first relist of pleg the worker calls Sync.
//
// pipeline.Pipeline implements Sync. It admits the pod: eviction rejects it under node
// pressure, allocation and admission if it does not fit, and the managers below cm if CPUs,
// memory or devices are not available. status computes the status, which is Pending. cm
// creates the cgroup, with the limits that follow from the spec. volume mounts the volumes,
// each with its plugin, from objects that kube/client or a directory provides. prober starts
// the probes, and runtime.Runtime gets a SyncPod, during which imagegc does not remove the
// pod's images. In runtime/cri the pure function plan.Compute decides that a sandbox and the
// first init container are to be created, and the engine carries this out over the CRI, with
// the names, labels and log paths of the kubelet.
//
// The init container exits. If the runtime has an event stream, pleg is notified immediately,
// otherwise it observes the exit in the next relist. It inspects web, caches the result and
// notifies the Loop, which syncs web again. This Sync starts the server, and the next one
// observes that it runs. status.Manager passes the status to the status.Sink: Running,
// and Ready when the readiness probe has succeeded; kube/client writes it into the mirror
// pod. From then on only the probes of web run.
//
// A Secret that web mounts changes. kube/client observes the change, and volume.Manager has
// the plugin replace the files atomically. No pod is synced for this.
//
// The server crashes. pleg, Loop and Sync follow as before. The plan restarts the container
// without delay the first time and after 10 s the second time (CrashLoopBackOff). The restart
// count is stored in the labels and annotations of containers, from which a later agent
// restores it.
//
// The disk fills up. eviction finds in the summary of cm/stats that a threshold is met. It has
// imagegc remove unused images and, if that is not enough, ranks the pods and kills the first,
// whose status has the reason Evicted. kube/node reports the pressure to the cluster, and pods
// that would increase it are rejected.
//
// The file is removed. The Loop terminates web: Terminate stops the containers, with TERM, the
// grace period, and KILL; Cleanup unmounts the volumes, removes the cgroup and releases
// resources. The last status is delivered, the exited containers and their logs are removed by
// garbage collection, and the worker is deleted.
//
// The agent is killed at any point of this. The containers continue to run. The next agent
// reads the same files and the same runtime, gives web the same UID, finds its volumes and its
// cgroup, and continues.
//
// A user calls kubectl logs, exec or top. The API server sends a request to kube/server, which
// authenticates and authorizes it with kube/auth. runtime/cri/logread reads the log across
// rotated files, the streams of the runtime are passed on, and kube/metrics serves what the
// hooks of all packages have counted, with the kubelet's names.
//
// The machine shuts down. shutdown is notified, by logind for example, rejects new pods,
// terminates the pods by priority, and delays the machine until the last status is delivered.
//
// # The import graph
//
// An arrow points to the imported package. TestImportsAreLimited permits exactly these
// imports. All packages use the types of runtime. The packages of the first four rows do
// not import each other, except as drawn below.
//
//	runtime ◀── pleg  podsource  podworker  status  allocation  pods: changes, desired pods, workers, statuses, resources
//	        ◀── imagegc  eviction  cm  cm/stats  cm/oom         node: images, pressure, cgroups, usage
//	        ◀── prober ──▶ runtime/podenv                       probes
//	        ◀── volume                                          volumes of pods
//	allocation/admission ──▶ allocation                         whether a pod fits a node: pure
//	podsource ──▶ podsource/manifest                            manifests: decoded, defaulted and validated
//
//	        ◀── shutdown ◀── shutdown/logind                    graceful node shutdown; systemd's notification
//
//	agent ──▶ pleg, podsource, podworker, status, prober, allocation   the pod pipeline; only agent assembles it
//	   ◀── agent/statuspage ──▶ eviction, imagegc, volume, cm/stats, runtime/cri   the state of an agent over HTTP
//	agent/tracing ──▶ podworker                                 OpenTelemetry spans of an agent
//	agent/podsapi                                               the pods of a node for programs on it, by gRPC
//	agent/claim                                                 one agent for a root directory and a runtime
//	status ◀── status/printer                                   statuses for a terminal
//
//	prober     ◀── prober/grpcprobe                             grpc probes
//	eviction   ◀┄┄ eviction/notify                              memory notifications of the kernel, by an interface
//
//	volume ◀── volume/emptydir, secret, configmap, csi …        volume plugins
//	       ◀── volume/objectdir                                 ConfigMaps and Secrets from files
//	       ◀── volume/volumetest                                an in-memory mounter, and the suite for plugins
//	       ◀── volume/payload ──▶ volume/atomic, podenv         the files of an object, and their atomic replacement
//	volume/token, volume/csi/register                           service account tokens; registration of CSI drivers
//
//	cm, cm/stats ──▶ cm/cgroups ◀── cm/cgroups/host             cgroups as values, and those of this machine
//	cm/managers ──▶ cm/cpu, cm/memory, cm/device                combines the resource managers for a CRI runtime
//	        └── all of them ──▶ cm/topology, cm/state           topology of the machine, and checkpoints
//	cm/dra ◀── cm/dra/registry                                  resource claims; DRA drivers over gRPC
//	cm/podresources ──▶ cm/device, cm/memory, cm/dra            the pod resources API
//
//	runtime/resolved ──▶ podconfig, podenv, volume/payload      a pod with its environment, files and tokens as one value
//
//	runtime/cri ──▶ runtime/cri/plan                            the next steps of a pod: pure
//	    │       ──▶ runtime/cri/podconfig ──▶ podenv            CRI requests: pure
//	    │       ──▶ runtime/cri/images                          pulls, and which pods may use a pulled image
//	    │       ──▶ runtime/cri/credentials                     credentials for pulls
//	    │       ──▶ allocation                                  the order of a resize
//	    ├── runtime/cri/remote                                  connects to a CRI socket
//	    ├── runtime/cri/streaming                               client of a runtime's streaming server
//	    ├── runtime/cri/streamserver                            streaming server of runtime/cri/serve and kube/server
//	    ├── runtime/cri/userns                                  host IDs for user namespaces
//	    ├── runtime/cri/logrotate, logread                      rotate logs; read them across rotations
//	    ├── runtime/process                                     implements the CRI's Go interfaces with processes
//	    ├── runtime/cri/fakecri                                 implements them in memory, for tests
//	    └── runtime/cri/serve                                   serves them on a socket
//	runtime/fake                                                the behavior and the faults of in-memory runtimes
//	runtime/runtimetest ──▶ runtime/fake                        an in-memory Runtime, and the conformance suite
//	sim ──▶ agent, runtimetest                                  a node in virtual time, from a seed
//	   └── sim/simcri ──▶ runtime/cri, fakecri                  the same with the CRI engine
//	       sim/scheduler                                        the node for a pod: pure
//	       sim/timeline                                         draws the history of pods; imports no other package
//	       sim/study ──▶ timeline                               compares policies over many seeds, in shares
//	       sim/record ──▶ agent, volume                         records a real node
//
//	kube/client ──▶ status, runtime                             pods, statuses and objects of an API server
//	kube/node ──▶ runtime                                       the Node object and its lease
//	kube/certs, kube/auth                                       certificates; authentication and authorization
//	kube/server ──▶ kube/auth, runtime, logread                 the kubelet's API, an http.Handler
//	kube/metrics ──▶ the packages with hooks                    Prometheus collectors, in packages by their dependencies
//	kube/fakenode ──▶ kube/client, kube/node, agent, sim/scheduler   nodes for tests of controllers
//	kube/hollow ──▶ kube/fakenode, kube/server                  nodes in several processes, with their ports
//	kube/trace ──▶ sim/cluster                                  plays the history of a cluster on another one
//	kube/provider ──▶ agent                                     the pod side of a virtual-kubelet provider
//	kube/kubelet ──▶ agent and all of the above                 the complete node; kubelet/config reads its configuration
//
//	runtime/podenv          environment of a container                 runtime/cri, podconfig, prober, volume/payload
//	logs                    klog in slog, limits of values of peers    agent/tracing, cm, runtime/cri, kube
//	internal/podspec        properties of pod specs, effects of exits  the packages that decide about pods
//	internal/podfields      support for each field of a pod            admission
//	internal/podhttp        httpGet requests                           prober, runtime/cri
//	internal/broadcast      events for readers with bounded queues     runtime/process, runtime/cri/fakecri
//	internal/checkpoint     atomic checkpoint files                    allocation to volume/csi
//	internal/crilog         logs in the CRI's format                   runtime/containers, process, cri/fakecri
//	internal/dirlock        one agent for a directory                  agent/claim, runtime/process
//	internal/conceal        removes values from texts                  agent/statuspage, runtime/cri
//	internal/untrusted      files that containers can write            the packages that read them
//	internal/staticuid      UIDs that kubelets give to static pods     podsource/manifest
//	internal/yamljson       YAML with limits                           agent/claim, podsource/manifest, volume/objectdir
//	internal/pause          interruptible waits                        eviction, logread, logrotate, runtimetest, sim
//	internal/runonce        rejects the second call of Run             the types with Run
//	internal/unixgrpc       serves gRPC on Unix sockets                agent/podsapi, cm, runtime/cri/serve
//	internal/usernamespace  detects user namespaces                    runtime/process, volume/emptydir
//	internal/gate           waits for calls in progress                runtime/cri/serve, streamserver
//	internal/singleflight   suppresses duplicate calls                 credentials, images
//	internal/terminal       makes text safe to print                   agent/statuspage, status/printer
//	internal/lab            real runtimes and clusters                 tests
//	internal/script         scenarios as text                          tests
//	internal/plugintest     sockets of plugins for tests               devicetest, dratest, csitest
//	internal/seedrun        a test with many seeds                     tests
//	internal/mutants        bugs that the tests must find              tests
//	internal/test/repo      tests of the repository as a whole         tests
//
// # Modules
//
// The core module requires neither client-go nor k8s.io/kubernetes. kube, the packages that
// need client-go, and examples are modules of their own, released together with the core;
// test and tools are not released.
//
// # Extension points
//
// Three interfaces connect an agent to its surroundings: podsource.PodSource specifies the
// desired pods, runtime.Runtime runs them, and status.Sink receives their statuses.
// Package agent assembles the packages between them, package kube/kubelet those of a complete
// node of a cluster, and examples/tiny uses two packages on their own.
package kubeparts
