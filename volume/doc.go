// Package volume mounts and unmounts the volumes of pods: file systems and block devices, in the
// kubelet's directory layout, for containers that a runtime runs.
//
// # Behavior
//
// A [Manager] resolves the volumes of a pod (from a claim to its persistent volume), selects the
// [Plugin] of each, and determines the next step of each volume: stage, set up, refresh, expand, tear
// down, unstage. The step is a function of the desired state, the actual state and the time. Plugins
// implement the kinds of volumes; those of Kubernetes are the packages below this one.
//
//	            Mount                      SetUp ok
//	not mounted ──────▶ (stage, set up) ──────────────▶ mounted ──▶ refresh, expand
//	     ▲                     │ error                     │
//	     │                     ▼                           │ Unmount
//	     └──── TearDown ok ─ uncertain ◀───────────────────┘
//
// # Usage
//
//	m, err := volume.New(volume.Config{
//		RootDir: "/var/lib/kubelet", Plugins: plugins, Mounter: volume.NewMounter(volume.CanMount()),
//	})
//	go m.Run(ctx)
//	mounted, err := m.Mount(ctx, pod) // at each sync of the pod, before its containers start
//	…
//	err = m.Unmount(ctx, pod)         // after its containers have terminated
//	err = m.Retain(ctx, keep)         // periodically: volumes that earlier agents mounted
//
// A Manager is the Volumes of a pipeline.Pipeline. [Manager.SubPath] and [Manager.Groups] are for the
// Config of runtime/cri, [Manager.VolumesInUse] is for the status of the node, and
// [Manager.VolumeStats] for its summary. The source of API objects calls [Manager.ObjectChanged].
//
// # Concurrency
//
// All methods are safe for concurrent use; calls of Mount and Unmount for the same pod must not
// overlap. Plugins are called concurrently, but not concurrently for the same volume. No callback is
// called while a lock is held. There are no periodic wake-ups except for measurements
// (Config.StatsPeriod).
//
// # Guarantees and limits
//
//   - A checkpoint is written before a volume is mounted. After a crash at any point, the next Manager
//     finds every volume and completes or removes it.
//   - A volume of an earlier agent is changed only when its pod is desired or known to be orphaned;
//     it is left as it is until Mount, Unmount or Collect decides.
//   - Nothing is removed through a mount: directories are opened relative to their parents and mounts
//     are unmounted first ([RemoveTree]).
//   - Of a pod's directory, volumes, volumeDevices, volume-subpaths and plugins belong to the Manager.
//     Collect removes the whole directory once keep returns false, so keep must return true until the
//     owners of other entries, such as runtime/cri, are done with the pod.
//   - No path in a volume leads a container out of the volume, even if it is changed concurrently
//     (Linux; sub-paths are rejected on other systems).
//   - A call of a plugin that never returns blocks its goroutine and its pod only: other pods mount, are
//     measured and unmount. Run waits for a step at most Config.StopTimeout after ctx is done, and two
//     seconds for one that has hung before, or for a measurement.
//   - After an error of a plugin the volume is uncertain and is torn down before its pod terminates,
//     unless the error is [Definite].
//
// # Differences from the kubelet
//
//   - The kubelet compares the desired and the actual state every 100 ms. Here a change starts the step
//     immediately, and changes of objects are pushed.
//   - The errors of [Manager.Mount] and [Manager.Unmount] begin with the kubelet's text, followed by the
//     phase and error of each volume. podworker/pipeline also records an event for a timeout
//     (rule nq-12).
//   - Deleting a pod cancels its set-ups, and a back-off ends when the missing object, driver or
//     volume appears.
//   - If a claim cannot be read, a pod whose volume is mounted continues to use it.
//   - Leftover files of orphaned pods are removed if only the pod can own them, after their mounts are
//     unmounted; failures are logged once per hour. The kubelet keeps such directories.
//   - fsGroup is applied in parallel, skips files that are correct, and follows no symbolic link, even
//     one created concurrently.
//   - A staged device has a checkpoint, so that a later agent unstages it even if no pod uses it.
//   - Volumes are mounted with an SELinux label only if their containers specify a level. For others
//     the runtime selects the label and labels the files.
//
// # Testing
//
// Tables test the planner, synctest bubbles the Manager with volumetest's plugin and mounter, real
// files the ownership, sub-paths and removal. volumetest.TestPlugin is the suite for
// plugins. As root, a stress test runs 200 pods while the agent is killed repeatedly.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package volume
