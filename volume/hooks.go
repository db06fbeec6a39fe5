package volume

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/compose"
)

// Hooks observe a [Manager]. Each may be nil. They are called concurrently and must not block. The
// calls for two consecutive steps of a volume may be reordered. The kubelet's metrics are computed
// from them and from [Manager.VolumeCounts], as the comments specify.
type Hooks struct {
	// Operated is called after each operation on a volume. Its Duration is
	// storage_operation_duration_seconds{volume_plugin, operation_name, status, migrated};
	// its Total, if not zero, is volume_operation_total_seconds{plugin_name,
	// operation_name}; operations with Forced are counted by
	// force_cleaned_failed_volume_operations_total and …_errors_total.
	Operated func(OperationInfo)

	// Reconciled is called after each pass of the reconciler. There are no passes while the
	// actual state equals the desired state.
	Reconciled func()

	// Reconstructed is called at the start for each volume on disk:
	// reconstruct_volume_operations_total and, with an error,
	// reconstruct_volume_operations_errors_total. recorded reports whether the volume has a
	// checkpoint; if not, its plugin constructed the spec. err is the reason why the spec is
	// unknown. Such a volume is unmounted and removed by its path once its pod is orphaned.
	Reconstructed func(at Place, recorded bool, err error)

	// Measured is called after each measurement of a volume. Unknown values are nil. For
	// one with a Spec.Claim it is kubelet_volume_stats_capacity_bytes, _available_bytes,
	// _used_bytes, _inodes, _inodes_free and _inodes_used{namespace, persistentvolumeclaim}.
	Measured func(pod *v1.Pod, spec *Spec, stats statsapi.FsStats)

	// Orphan is called after each attempt to remove the directory of an orphaned pod. err is
	// nil if it was removed completely.
	Orphan func(uid types.UID, err error)

	// Collected is called after each Retain whose context is not done, with the number of
	// directories of orphaned pods, kubelet_orphan_pod_cleaned_volumes, and of those that
	// could not be removed, kubelet_orphan_pod_cleaned_volumes_errors.
	Collected func(orphans, failed int)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Operated, o.Operated)
		compose.Add0(&h.Reconciled, o.Reconciled)
		compose.Add3(&h.Reconstructed, o.Reconstructed)
		compose.Add3(&h.Measured, o.Measured)
		compose.Add2(&h.Orphan, o.Orphan)
		compose.Add2(&h.Collected, o.Collected)
	}
	return h
}

// An OperationInfo describes a completed operation on a volume.
type OperationInfo struct {
	// Operation is the kubelet's name: "volume_mount", "volume_unmount", "volume_stage",
	// "volume_unstage", "volume_fs_resize", or "volume_refresh", which the kubelet counts
	// as volume_mount.
	Operation string
	Plugin    string
	Volume    string
	PodUID    types.UID // empty for an operation on a staged device
	Migrated  bool      // Spec.Migrated
	Forced    bool      // the volume has no plugin and was unmounted and removed by its path
	Duration  time.Duration
	Err       error

	// Total is the time since the desired state of the volume changed, including failed
	// attempts and back-off. It is zero unless Operation is volume_mount or volume_unmount
	// and succeeded.
	Total time.Duration
}

// operationName returns the name of a step in metrics.
func operationName(s step) string {
	return map[step]string{
		setUp: "volume_mount", refresh: "volume_refresh", tearDown: "volume_unmount",
		stage: "volume_stage", unstage: "volume_unstage", expand: "volume_fs_resize",
	}[s]
}

// VolumeCounts returns the number of volumes of pods in the desired and in the actual state, by plugin:
// volume_manager_total_volumes{plugin_name, state} with the states desired_state_of_world and
// actual_state_of_world. Both have the same plugins. Safe for concurrent use.
func (m *Manager) VolumeCounts() (desired, actual map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	desired, actual = map[string]int{}, map[string]int{}
	count := func(in map[string]int, plugin string, counts bool) {
		if in[plugin] += 0; counts {
			in[plugin]++
		}
	}
	for _, v := range m.world.volumes {
		count(desired, v.place.Plugin, v.desired)
		count(actual, v.place.Plugin, v.state != notMounted)
	}
	return desired, actual
}
