package replay

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim/record"
)

// Operations on volumes that an agent waits for. The others are not replayed.
const (
	mounted   = "volume_mount"
	unmounted = "volume_unmount"
)

// volumes are the recorded volumes: a pod waits until its volumes were mounted.
type volumes struct{ w *world }

// Mount returns when the volumes that were mounted in the recording are mounted. A volume that was not, such as one
// that an earlier agent mounted, is mounted at once.
func (v volumes) Mount(ctx context.Context, pod *v1.Pod) (map[string]runtime.Volume, error) {
	if err := v.all(ctx, pod, mounted); err != nil {
		return nil, err
	}
	out := map[string]runtime.Volume{}
	for i := range pod.Spec.Volumes {
		out[pod.Spec.Volumes[i].Name] = runtime.Volume{Path: "/var/lib/replay/" + pod.Spec.Volumes[i].Name}
	}
	return out, nil
}

// Unmount returns when the volumes that were unmounted in the recording are unmounted.
func (v volumes) Unmount(ctx context.Context, pod *v1.Pod) error { return v.all(ctx, pod, unmounted) }

// all makes an operation on each volume of a pod, concurrently: one that fails does not delay the others.
func (v volumes) all(ctx context.Context, pod *v1.Pod, name string) error {
	errs := make([]error, len(pod.Spec.Volumes))
	var wg sync.WaitGroup
	for i := range pod.Spec.Volumes {
		wg.Go(func() {
			errs[i] = v.each(ctx, record.Operation{Component: "volume", Name: name, Pod: pod.UID, Volume: pod.Spec.Volumes[i].Name})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// each makes an operation that is due as often as it was recorded, until it succeeds. After a failure without a
// further try it blocks until ctx is done, as a volume manager does.
func (v volumes) each(ctx context.Context, op record.Operation) error {
	failed := false
	for {
		at, ok := v.w.nextOperation(op)
		if !ok || at > v.w.now()+v.w.tolerance && !failed {
			if failed && v.w.model != nil {
				return v.w.sleepUntil(ctx, "volume "+op.Volume, v.w.x.end) // it can be mounted after the recording
			}
			if failed {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		if v.w.sleepUntil(ctx, "volume "+op.Volume, at) != nil {
			return ctx.Err()
		}
		if err := v.w.operate(ctx, op); err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		failed = true
	}
}
