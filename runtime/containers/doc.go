// Package containers makes a complete runtime of a backend that can run one
// container: a machine manager, a cloud API, an enclave.
//
// A [Backend] has four methods: Run, Stop, Remove and List. The [Runtime] over it
// has the kubelet's semantics: init containers, sidecars, restart rules and
// back-off, hooks, termination order and grace, ephemeral containers, volumes,
// termination messages, and adoption after a restart of the agent. They are
// computed by the engine of package runtime/cri, to which the backend is presented
// as a CRI runtime.
//
// # Usage
//
//	rt, err := containers.New(containers.Config{
//		Backend: backend, Node: "node-1",
//		Support: containers.Support{SeparateContainers: true},
//		Engine:  cri.Config{Name: "machines", Dirs: …},
//	})
//
// A Runtime is an admitter of package podworker/pipeline, which rejects pods that
// the backend cannot run:
//
//	agent.Config{Runtime: rt, Subsystems: agent.Subsystems{Admitters: pipeline.Admitters{rt}}, …}
//
// Optional interfaces of a backend are found by compose.As; each documents the
// behavior without it: [Grouper], [Execer], [Attacher], [LogReader], [StatsProvider],
// [Puller], [Updater], [Watcher]. [Support] declares the rest. A pod that needs more is rejected with
// the reason UnsupportedByBackend.
//
// # Concurrency
//
// As package runtime/cri. There are no goroutines except those of calls in
// progress, and with a LogReader one for each running instance until Close.
//
// # Guarantees and limits
//
//   - The agent may be killed at each call of the backend, before the call takes
//     effect or after it: no container runs twice, and restart counts, init
//     containers and sidecars are as with an agent that was not killed. That
//     depends on Run, which starts one instance per Key.
//   - Everything that must outlive the agent is in the Record of the instances, so
//     that an agent whose directory is lost adopts them. Only an instance that was
//     created and not started has a file, below <Dirs.Root>/created; its
//     environment may contain values of Secrets, as the state of CRI runtimes does.
//   - A start that fails is tried again with the same Key, without a crash-loop
//     back-off and without incrementing the restart count.
//   - SyncPod waits for a queued instance, at most cri.CallConfig.Timeout; the next
//     call continues. A deletion ends the wait within 5 s.
//   - Inspecting a pod takes one call of List; with a Grouper two. Starting a
//     container takes some more.
//   - Without a Grouper a pod has the address of its first running container, or
//     none, and its sandbox exists in the agent only.
//   - Port-forward dials the pod's address, which must be reachable from the host.
//   - Logs are files if the backend is a LogReader or writes to Container.LogPath.
//   - Resizing a running container, image garbage collection, checkpoints and image
//     volumes are not supported.
//   - Volumes are host directories with Support.Mounts. With Support.Files they are data:
//     the files of configMap, secret, downwardAPI and projected volumes, which
//     resolved.Resolver as the volumes of the agent provides; they are not written to this
//     host, and an [Updater] has changed objects and rotated tokens without delay.
//   - With neither the default token of a service account is not mounted: programs that call
//     the API server find none.
//   - Without Support.Mounts env files (fileKeyRef) do not exist.
//
// # Differences from the kubelet
//
// It has no counterpart in the kubelet. The engine is that of package runtime/cri,
// with its differences.
//
// # Testing
//
// The conformance suite of package runtimetest runs over the backend in memory of
// containerstest, also with slow starts, and over a machine manager of eight methods
// that is adapted in 98 lines. A test kills the agent at each call.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package containers
