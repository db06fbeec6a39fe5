// Package cri runs pods on any CRI v1 runtime (containerd, CRI-O, or plain
// processes by runtime/process), the way the kubelet does.
//
// # What it decides
//
// How a step is carried out: which calls with which arguments, in which order,
// and what follows when one fails. Which step is due is decided by
// [plan.Compute], a pure function; [Runtime.SyncPod] computes the plan and does
// what it says. Labels, annotations, names, attempt numbers, log paths, events
// and waiting reasons are the kubelet's, byte for byte, so that crictl and log
// collectors see what they know, and containers that a kubelet made are taken
// over.
//
// # Usage
//
// Dial a socket with package runtime/cri/remote and hand its two services to
// [New]; or hand it any other values of the CRI's Go interfaces. A [Runtime] is
// a [runtime.Runtime], and has the optional powers that package runtime knows. For
// streams it needs Config.Streams, a streaming.Client, unless the runtime is in
// this program.
//
// # Concurrency
//
// All methods may be called from many goroutines. For one pod, SyncPod and
// KillPod must not overlap (package podworker sees to that). Containers of a pod
// are started one after the other and stopped all at once, sidecars last. Images
// are pulled one at a time, unless Config.Pulls says otherwise.
//
// # Guarantees and limits
//
//   - What a failed call leaves open is looked up before anything is done twice,
//     and once more before a container is made: a sandbox or container that was
//     made or started although the runtime said otherwise is taken as it is.
//   - Everything ends when its context ends: a pull, a hook, a wait for a sidecar.
//     Only a call that makes or starts something gets 5 s more to end by itself.
//   - Each call has a deadline of its own (Config.CallTimeout), is told to
//     Hooks.Called under the name of the kubelet's metric, and fails with one of
//     package runtime's classes. A call that only its own deadline ended is
//     runtime.ErrUnavailable. A service that ignores contexts is waited for.
//   - What a runtime has not got is runtime.ErrUnsupported, save where there is
//     something to do instead: stats of pods are made of those of containers
//     (containerd has none of a pod without CgroupParent), an unknown cgroup
//     driver is unknown, and a sandbox that cannot be resized is left as it is.
//     A container that cannot be resized fails one sync, which says so, and runs
//     on with what it has.
//   - An answer that lacks what the CRI says it must have is an error that names
//     it (rt-145 … rt-147), whoever the services are.
//   - A container's end has one deadline; its preStop hook, its turn and the
//     grace of its TERM share it.
//   - State that has to outlast the agent is in the runtime (restart counts in
//     annotations, back-off in the times of dead containers), and what a runtime
//     has no place for in a small record per pod, <RootDir>/pods/<uid>/runtime.json:
//     counts when all instances are gone, hooks that have not ended, resources
//     that a resize gave. A record that is lost is derived as well as can be.
//   - Files that containers can write (their hosts file, termination messages,
//     logs) are read with a bound, whatever the containers made of them.
//   - Of a removed pod's directory below Config.RootDir, containers, etc-hosts and
//     runtime.json are removed, nothing through a mount, and the directory itself
//     once it is empty. Other entries belong to the volume manager.
//   - What the runtime or a manifest names as a path is not followed out of the
//     directories it belongs to.
//
// What it does not do itself it asks for: probe results come with a SyncRequest,
// granted resources in the pod's spec (package allocation), volumes as host paths,
// ConfigMaps, Secrets and Services through Config.Objects, the node's credentials
// through Config.Keyring, devices and pinned CPUs through Config.Managers. A volume
// that the caller did not prepare keeps a container from starting, with
// CreateContainerConfigError; images as volumes it prepares itself. A RuntimeClass
// without Config.RuntimeClass, and hostUsers: false without Config.UserNamespaces
// or with a handler that does not know user namespaces, keep the pod from getting a
// sandbox. Pods with Windows containers are not supported. docs/pod-fields.md tells
// of each field.
//
// An agent that is killed while containerd 2 starts a container for it leaves one
// that containerd calls exited (128, StartError) and refuses to remove; no program
// of it runs, a new instance takes its place, and each garbage collection tries
// again.
//
// A sub-path is resolved when the container is made, and opened by the runtime a
// moment later: who can write to the volume can mislead that.
//
// # Differences from the kubelet
//
// Instances that were created and never started are started, not replaced
// (lq-13); any running instance of a name counts (lq-12); the back-off
// survives a restart of the agent and has no jitter (lq-29, lq-9); of the
// instances of one container the highest attempt is the newest, also if the
// clock was set back between them (rt-10); a deletion interrupts pulls and
// hooks (lq-8). When a sandbox is replaced, its dead init containers are
// left to garbage collection. An image name that no registry could have is
// asked of the runtime before it is refused. A postStart hook that was cut off
// by the agent's end is run by the next one, from its beginning (lq-14). Grace
// periods of 0 and 1 s are taken at their word; only what a hook or a turn has
// spent is made up for with 2 s (lq-34). Resource managers that cannot prepare a
// pod are an error of its sync (lq-18). What has exited is inspected once in its
// life (lq-32). Images that are volumes are looked for when something is to be
// started, not with every sync (img-16). A container that the spec does not have
// any more is stopped with its pod by what the runtime recorded of it (rt-107), and
// so is one that the runtime lost track of (rt-121). A hook's request goes to the
// addresses that the pod was last seen with (rt-100). A pod whose UID or names
// can't be part of a path is refused before anything is made. [Compat] brings the
// kubelet's ways back where a user could see the difference; plan, images and
// podworker have options of their own.
//
// # Testing
//
// The unit tests run the engine on a small CRI in memory that can lose answers;
// what it is sent is compared with testdata (go test -update rewrites that).
// runtimetest.TestRuntime runs over runtime/process with the unit tests, and over
// real containerds with the integration suite (docs/integration.md), in which a
// pod lives its life, and a daemon hangs in the middle of starts.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package cri
