package cri

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Watch implements [runtime.Watcher] with the CRI's container events. A runtime
// that has none, such as containerd 1.6, answers with an error at once.
func (r *Runtime) Watch(ctx context.Context, changed func(uid types.UID)) error {
	events := make(chan *runtimeapi.ContainerEventResponse, 64)
	ended := make(chan error, 1)
	go func() { ended <- r.cfg.Runtime.GetContainerEvents(r.quiet(ctx), events, nil) }()
	for { // until the stream has ended, so that its sender is never left blocked
		select {
		case e := <-events:
			if uid := podOfEvent(e); uid != "" && ctx.Err() == nil {
				changed(uid)
			}
		case err := <-ended:
			switch {
			case ctx.Err() != nil:
				return nil
			case err == nil:
				return errors.New("cri: the stream of container events ended")
			}
			return fmt.Errorf("cri: container events: %w", err)
		}
	}
}

// podOfEvent returns whom an event is about, or "" if it does not say: the
// sandbox may be gone, and its containers still tell.
func podOfEvent(e *runtimeapi.ContainerEventResponse) types.UID {
	if uid := e.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		return types.UID(uid)
	}
	for _, c := range e.GetContainersStatuses() {
		if uid := c.GetLabels()[podconfig.LabelPodUID]; uid != "" {
			return types.UID(uid)
		}
	}
	return ""
}
