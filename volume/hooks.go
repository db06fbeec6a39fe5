package volume

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Hooks observe a [Manager]. Each may be nil. They are called from many
// goroutines, and must not block. Of two steps that follow each other at once, the
// second may be told of first. The kubelet's metrics are made of them, and of
// [Manager.Totals]; each comment says which.
type Hooks struct {
	// Operated tells of each step that was taken with a volume (vol-81):
	// storage_operation_duration_seconds{volume_plugin, operation_name, status,
	// migrated} is Duration; volume_operation_total_seconds{plugin_name,
	// operation_name} is Total, where that is not zero;
	// force_cleaned_failed_volume_operations_total and …_errors_total count
	// those with Forced (vol-35).
	Operated func(OperationInfo)

	// Woken is called each time that the reconciler has looked for something
	// to do. Where all is as wanted it is not called at all (F-42).
	Reconciled func()

	// Reconstructed tells of each volume that was found on the disk at the
	// start: reconstruct_volume_operations_total, and, with an Err,
	// reconstruct_volume_operations_errors_total (vol-35).
	Reconstructed func(ReconstructInfo)

	// Measured tells of each volume that was measured (vol-80). For one with a
	// Spec.Claim: kubelet_volume_stats_capacity_bytes, _available_bytes,
	// _used_bytes, _inodes, _inodes_free and _inodes_used{namespace,
	// persistentvolumeclaim}, and, if Stats.Abnormal is known,
	// kubelet_volume_stats_health_status_abnormal.
	Measured func(MeasuredInfo)

	// Orphan tells of each directory of a pod that nobody wants (vol-38).
	Orphan func(OrphanInfo)

	// Collected tells of each round of Collect that was not called off (vol-38):
	// kubelet_orphan_pod_cleaned_volumes is Orphans, and
	// kubelet_orphan_pod_cleaned_volumes_errors is Failed.
	Collected func(CollectInfo)
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
	Forced    bool      // nobody knew the volume: it was removed from outside (vol-34)
	Duration  time.Duration
	Err       error

	// Total is how long it took from when the volume was wanted, or not wanted
	// any more, until this step had it so: with what failed before, and the
	// waits. Zero: it is not so yet, or the step is another.
	Total time.Duration
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

// A CollectInfo is one round of [Manager.Collect].
type CollectInfo struct {
	Orphans int // directories of pods that nobody wants
	Failed  int // of them, those that are still there
}

// operationName is the name of a step in metrics.
func operationName(s step) string {
	return map[step]string{
		setUp: "volume_mount", refresh: "volume_refresh", tearDown: "volume_unmount",
		stage: "volume_stage", unstage: "volume_unstage", expand: "volume_fs_resize",
	}[s]
}

// A Total is how many volumes of one plugin are wanted, and how many are there.
type VolumeCount struct {
	Plugin          string
	Desired, Actual int
}

// Totals counts the volumes of pods, sorted by plugin:
// volume_manager_total_volumes{plugin_name, state} with the states
// desired_state_of_world and actual_state_of_world (vol-35).
func (m *Manager) VolumeCounts() []VolumeCount {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := map[string]*VolumeCount{}
	for _, v := range m.world.volumes {
		t := of[v.place.Plugin]
		if t == nil {
			t = &VolumeCount{Plugin: v.place.Plugin}
			of[v.place.Plugin] = t
		}
		if v.wanted {
			t.Desired++
		}
		if v.state != NotMounted {
			t.Actual++
		}
	}
	var list []VolumeCount
	for _, plugin := range slices.Sorted(maps.Keys(of)) {
		list = append(list, *of[plugin])
	}
	return list
}
