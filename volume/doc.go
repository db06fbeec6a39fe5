// Package volume gets the volumes of pods ready and away: files and devices, in
// the kubelet's layout on disk, for containers that somebody else runs.
//
// # What it decides
//
// What a pod's volumes are (a claim leads to a persistent volume), which [Plugin]
// each belongs to, and which step is due for it: attach, stage, set up, refresh,
// expand, tear down, unstage. That is a pure function of what is wanted, what is
// there and the time. Plugins, which know the kinds, are packages below this one;
// you may write your own.
//
//	            Mount                      SetUp ok
//	not mounted ──────▶ (stage, set up) ──────────────▶ mounted ──▶ refresh, expand
//	     ▲                     │ error                     │
//	     │                     ▼                           │ Unmount
//	     └──── TearDown ok ─ uncertain ◀───────────────────┘
//
// # Usage
//
//	m, err := volume.New(volume.Config{RootDir: "/var/lib/kubelet", Plugins: plugins, Mounter: mount.New("")})
//	go m.Run(ctx)
//	ready, err := m.Mount(ctx, pod) // at each sync of the pod, before its containers
//	…
//	err = m.Unmount(ctx, pod)       // when none of its containers runs
//	m.Collect(ctx, keep)            // now and then: what earlier agents have left
//
// A Manager is what podworker.Pipeline takes as Volumes. [Manager.SubPath] and
// [Manager.Groups] are for runtime/cri's Config, [Manager.InUse] is for the node's
// status, [Manager.Stats] for its summary. Who has the objects calls
// [Manager.ObjectChanged].
//
// # Concurrency
//
// All methods may be called from any goroutine; those for one pod should not
// overlap. Plugins are called from many goroutines, once at a time for one volume.
// Nobody is called while a lock is held. While everything is as wanted nothing
// wakes up, but to measure (Config.StatsPeriod).
//
// # Guarantees and limits
//
//   - A volume is on record before it is mounted. A manager that is killed at any
//     point is succeeded by one that knows all there is, and finishes it.
//   - What is there of a pod is touched only when it is wanted, or known to be
//     unwanted: until Collect hears that, what an earlier agent left stays.
//   - Nothing is removed through a mount, whoever made it: directories are
//     opened one from the other, and mounts are first unmounted ([RemoveTree]).
//   - Of a pod's directory, volumes, volumeDevices, volume-subpaths and plugins
//     belong to the Manager. Collect removes the directory with everything in it
//     once keep is false, so keep must report true until the owners of other
//     entries, such as runtime/cri, are done with the pod.
//   - No path in a volume leads a container out of it, whatever is swapped while
//     it is looked at (Linux; elsewhere sub-paths are refused).
//   - A mount that hangs in the kernel holds its goroutine, and nobody else but its
//     pod; Run's end waits for it for Config.StopTimeout.
//   - An error of a plugin leaves a volume half there, and it is torn down
//     before its pod goes, unless the error is [Definite].
//
// # Differences from the kubelet
//
//   - It is told what is wanted, and doesn't look at lists each 100 ms: mounting
//     begins at once (F-42), and changes of objects are pushed (F-43).
//   - The errors of [Manager.Mount] and [Manager.Unmount] begin with the kubelet's
//     words, and then tell of each volume how far it is (F-41). podworker makes an
//     event of a timeout, too (nq-12; unless PipelineConfig.QuietMountTimeouts).
//   - A pod that goes calls its set-ups off, and a back-off ends when what is
//     waited for comes: an object, a driver, another pod's volume.
//   - A pod whose claim can't be read goes on with a volume that is mounted.
//   - What is left of orphaned pods is removed if it can be nobody else's
//     (Compat.KeepLeftovers: never, nq-11), mounts first, with one line of log in
//     an hour (F-39).
//   - The fsGroup walk is parallel, leaves alone what is right, and follows no
//     link, also none that comes while it is at work (F-40).
//   - A device is staged on record as well, so that it is unstaged by a later
//     agent even if no pod of it is left (F-45).
//   - Quotas are not used to measure (vol-78).
//   - Only volumes whose one access mode is ReadWriteOncePod are mounted with an
//     SELinux label, as in Kubernetes 1.36 (1.37 mounts those of all modes so), and
//     only if the containers that use them name a level: the label of others is the
//     runtime's choice, and it labels their files.
//
// # Testing
//
// The planner by tables, the Manager in synctest bubbles over volumetest's plugin
// and mounter, ownership, sub-paths and removal on real files; each rule by number
// (rules_test.go). volumetest.TestPlugin is the suite of all plugins. As root, 200
// pods come and go while the agent is killed.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package volume
