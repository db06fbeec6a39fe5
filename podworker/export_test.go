package podworker

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Settle and Sweep are the synchronous steps of Loop.Run.
func (l *Loop) Settle() { l.settle() }

// Sweep terminates orphaned pods.
func (l *Loop) Sweep() { l.terminateOrphans() }

// KillOrphan terminates a pod without a worker.
func (w *Workers) KillOrphan(orphan *runtime.Pod) { w.killOrphan(orphan) }

// PodChanged is what Run calls for each changed pod of the Table.
func (l *Loop) PodChanged(uid types.UID) { l.podChanged(uid) }

// TranslateUID returns the UID of the static pod for that of its mirror pod.
func (t *Table) TranslateUID(uid types.UID) types.UID { return t.translateUID(uid) }
