package volume

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Hooks observe a [Manager]. Each may be nil. They are called from many
// goroutines, and must not block.
type Hooks struct {
	// Operated tells of each step that was taken with a volume (vol-81).
	Operated func(OperationInfo)

	// Woken is called each time that the reconciler has looked for something
	// to do. Where all is as wanted it is not called at all (F-42).
	Woken func()

	// Reconstructed tells of each volume that was found on the disk at the
	// start (vol-35).
	Reconstructed func(ReconstructInfo)

	// Measured tells of each volume that was measured (vol-80).
	Measured func(MeasuredInfo)

	// Orphan tells of each directory of a pod that nobody wants (vol-38).
	Orphan func(OrphanInfo)
}

// An OperationInfo is one step taken with a volume.
type OperationInfo struct {
	// Operation is the kubelet's name of it: "volume_mount", "volume_unmount",
	// "volume_stage", "volume_unstage", "volume_fs_resize", or
	// "volume_refresh", which the kubelet has among the mounts.
	Operation string
	Plugin    string
	Volume    string
	PodUID    types.UID // empty for what is done once for all pods
	Duration  time.Duration
	Err       error
}

// A ReconstructInfo is one volume that an earlier agent has left.
type ReconstructInfo struct {
	Place Place

	// Recorded: there is a record of it. If not, its plugin was asked.
	Recorded bool

	// Err is why nobody knows what it is. It is removed as what it looks like
	// from outside, once its pod is known to be gone (vol-34).
	Err error
}

// A MeasuredInfo is what a volume was measured to hold. Spec.Claim is nil for
// volumes without one.
type MeasuredInfo struct {
	Pod    *v1.Pod
	Spec   *Spec
	Plugin string
	Stats  Stats
}

// An OrphanInfo is the directory of a pod that nobody wants.
type OrphanInfo struct {
	PodUID types.UID
	Err    error // why it, or a part of it, was left
}

// operationName is the name of a step in metrics.
func operationName(s step) string {
	return map[step]string{
		setUp: "volume_mount", refresh: "volume_refresh", tearDown: "volume_unmount",
		stage: "volume_stage", unstage: "volume_unstage", expand: "volume_fs_resize",
	}[s]
}
