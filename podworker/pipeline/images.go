package pipeline

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Images prevents the removal of images while the pods that use them are being started.
// imagegc.Manager implements it.
type Images interface {
	// AcquireImages prevents the removal of every image of the pod until release is
	// called. It may block while one of them is being removed.
	AcquireImages(ctx context.Context, pod *v1.Pod) (release func(), err error)
}

// syncPod calls SyncPod while the images of the pod cannot be removed, so that none is
// removed between the check for its presence and its use.
func (p *Pipeline) syncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if p.cfg.Resources.Images == nil {
		return p.cfg.Runtime.SyncPod(ctx, req)
	}
	release, err := p.cfg.Resources.Images.AcquireImages(ctx, req.Pod)
	if err != nil {
		return runtime.SyncResult{}, err
	}
	defer release()
	return p.cfg.Runtime.SyncPod(ctx, req)
}
