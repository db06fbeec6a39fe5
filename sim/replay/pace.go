package replay

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A lister paces the lists of pleg, so that they are not at the instant of those of the garbage collection.
type lister struct {
	*cri.Runtime
	w *world
}

func (l lister) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	if l.w.pace(ctx, "relist") != nil {
		return nil, ctx.Err()
	}
	return l.Runtime.Pods(ctx)
}

func (l lister) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	if l.w.pace(ctx, "inspect "+string(uid)) != nil {
		return nil, ctx.Err()
	}
	return l.Runtime.PodStatus(runtime.AllowAnnounced(ctx, false), uid) // as the recorded agent
}

// pacedStatuses pace the syncs of pods that become due at one instant.
type pacedStatuses struct {
	podworker.StatusCache
	w *world
}

func (s pacedStatuses) GetNewerThan(ctx context.Context, uid types.UID, t time.Time) (*runtime.PodStatus, error) {
	if s.w.pace(ctx, "sync "+string(uid)) != nil {
		return nil, ctx.Err()
	}
	return s.StatusCache.GetNewerThan(ctx, uid, t)
}

// A pacedReporter lets a status be written before the next one is reported: whether the first one is written would
// depend on the Go scheduler.
type pacedReporter struct {
	pipeline.Reporter
	w *world
}

func (r pacedReporter) Report(pod *v1.Pod, observed *runtime.PodStatus, starts map[string]v1.ContainerStateWaiting, end runtime.Termination) v1.PodStatus {
	out := r.Reporter.Report(pod, observed, starts, end)
	time.Sleep(r.w.delay("report "+string(pod.UID), r.w.now()+writes))
	return out
}

// writes is longer than the pace of a status that is written.
const writes = 5 * time.Microsecond
