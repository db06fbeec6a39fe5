// Package cri runs pods on a CRI v1 runtime (containerd, CRI-O, or plain processes
// with package runtime/process), as the kubelet does.
//
// [Runtime.SyncPod] computes a plan with [plan.Compute], a pure function, and carries
// it out: this package determines the calls, their arguments and order, and the
// handling of failures. Labels, annotations, names, attempt numbers, log paths,
// events and waiting reasons are equal to the kubelet's, so that crictl and log
// collectors work unchanged, and containers created by a kubelet are adopted.
//
// # Usage
//
// Dial a socket with package runtime/cri/remote and pass its two services to [New],
// or pass any other implementation of the CRI's Go interfaces. [Runtime] implements
// runtime.Runtime and the optional interfaces of package runtime. Streams require
// CallConfig.Streams, a streaming.Client, unless the runtime is in the same program.
// See the example of [Runtime.SyncPod].
//
// # Concurrency
//
// A Runtime is safe for concurrent use, but SyncPod and KillPod must not be called
// concurrently for the same pod; package podworker ensures that. Containers of a pod
// are started sequentially and stopped in parallel, sidecars last. Images are pulled
// one at a time unless Config.Pulls specifies otherwise.
//
// # Guarantees and limits
//
//   - After a failed call the runtime is inspected before the operation is repeated,
//     and again before a container is created: a sandbox or container that was created
//     or started although the call failed is used.
//   - All operations end when their context is done: pulls, hooks, waiting for
//     sidecars. Only a call that creates or starts something may take 5 s longer.
//   - Each call has a deadline (CallConfig.Timeout), is reported to Hooks.Called with
//     the name of the kubelet's metric, and returns an error of one of the classes of
//     package runtime. A call that exceeds its own deadline is runtime.ErrUnavailable.
//     Services must return when their context is done.
//   - Operations that the runtime does not support return runtime.ErrUnsupported,
//     except where there is a fallback: stats of pods are derived from those of
//     containers (containerd has none for a pod without Providers.Cgroups), the cgroup
//     driver is reported as unknown, and a sandbox is not resized. If a container
//     cannot be resized, one sync fails and the container keeps its resources.
//   - A response without a field that the CRI requires is an error that names the
//     field.
//   - The grace period of a container includes its preStop hook, the wait for other
//     containers and the time after TERM.
//   - State that must outlive the agent is stored in the runtime (restart counts in
//     annotations, back-off in the times of exited containers). The rest is in a
//     checkpoint per pod, <Root>/pods/<uid>/runtime.json: restart counts of removed
//     containers, pending hooks, and resources set by a resize. If a checkpoint is
//     lost, its content is derived from the runtime as far as possible. It survives the
//     agent at any time; a power failure can lose the last minute of it, unless it has
//     exits of removed containers, which cannot be derived and are synced to the disk.
//   - A pod is restored from a checkpoint (Providers.RestoreFrom) with one call in place of those that create
//     its sandbox and containers; its init containers do not run, and its postStart hooks do. If a restored
//     container cannot be started, the sandbox is removed without grace periods, and the pod is restored again.
//     A later agent continues a restore, even if the checkpoint has been removed. Once all containers have been
//     started, the checkpoint is not used again.
//   - Not more pods are started at a time than the runtime can start without delaying
//     them (CallConfig.Starts). A call that hangs delays the starts of other pods by
//     seconds at most, and those of pods in the host network not at all.
//   - Files that containers can write (hosts file, termination messages, logs) are
//     read with a size limit, and may be of any type.
//   - Pods, containers and logs of another node that uses the same runtime or directory of
//     logs are neither reported nor removed (Providers.Ledger).
//   - When a pod is removed, the entries containers, etc-hosts and runtime.json of its
//     directory below Dirs.Root are removed, not crossing mounts, and the directory if
//     it is empty. Other entries belong to the volume manager.
//   - Paths in manifests or reported by the runtime are not followed out of the
//     directories they belong to.
//
// The package depends on its caller for probe results (SyncRequest), allocated
// resources (in the pod's spec; package allocation), volumes as host paths, and for
// everything in [Providers]. A volume that the caller did not mount keeps a container
// from starting with CreateContainerConfigError; image volumes are mounted by this
// package. A pod with a RuntimeClass is not started without Providers.RuntimeClass;
// one with hostUsers: false is not started without Providers.UserNamespaces or if the
// handler does not support user namespaces. Windows containers are not supported.
// docs/pod-fields.md lists the support of each field.
//
// If an agent is killed while containerd 2 starts a container, containerd reports the
// container as exited (128, StartError) and fails to remove it. It runs no process, a
// new instance replaces it, and each garbage collection retries the removal.
//
// Without Providers.Volumes, a sub-path is resolved when the container is created and
// opened by the runtime later: a process that writes to the volume can redirect it in
// between.
//
// # Differences from the kubelet
//
//   - Instances that were created and not started are started, not replaced, and any
//     running instance of a container is used.
//   - The back-off survives a restart of the agent and has no jitter. A pod that was killed
//     and is synced again, such as a static pod whose manifest is created again, has none.
//   - The instance of a container with the highest attempt is the newest, even if the
//     clock was set back.
//   - A deletion interrupts pulls and hooks.
//   - When a sandbox is replaced, its exited init containers are left to garbage
//     collection.
//   - The runtime is queried for an image name that is not a valid reference before it
//     is rejected.
//   - A postStart hook interrupted by the end of the agent is run again by the next
//     agent. Until a hook has succeeded, the container is Starting, also during a
//     deletion: it is not reported as running.
//   - Grace periods of 0 and 1 s are not extended. Only time used by a hook or by the
//     wait for other containers is compensated, up to 2 s.
//   - Managers that fail to prepare a pod fail its sync.
//   - An exited container is inspected once.
//   - Image volumes are inspected when a container is started, not with every sync.
//   - A container that is no longer in the spec, or whose state is unknown, is stopped
//     according to the annotations in the runtime.
//   - A hook's request is sent to the last observed addresses of the pod.
//   - The event LifecycleHTTPFallback is one of the container, which it names; the kubelet's is
//     one of the pod and names the address.
//   - A pod whose UID or names are not valid in a path is rejected.
//
// # Testing
//
// The unit tests run on an in-memory CRI that can lose responses, and compare requests
// with golden files (go test -update rewrites them). runtimetest.TestRuntime runs on
// runtime/process with the unit tests, and on containerd with the integration tests
// (docs/integration.md), which also run a pod through its lifecycle and suspend the
// daemon during starts.
//
// # Stability
//
// Growing: minor versions may change the API. CHANGELOG.md describes how to adapt.
package cri
