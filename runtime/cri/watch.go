package cri

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Watch implements [runtime.Watcher] with the CRI's container events. It returns an error
// immediately if the runtime has none, as containerd 1.6.
func (r *Runtime) Watch(ctx context.Context, changed func(uid types.UID)) error {
	events := make(chan *runtimeapi.ContainerEventResponse, 64)
	ended := make(chan error, 1)
	go func() { ended <- r.cfg.Runtime.GetContainerEvents(r.quiet(ctx), events, nil) }()
	for { // until the stream has ended, so that its sender does not block forever
		select {
		case e := <-events:
			if uid := podOfEvent(e); uid != "" && r.cfg.Providers.Ledger.Owns(uid) && ctx.Err() == nil {
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

// podOfEvent returns the pod of an event, "" if unknown. Without a sandbox status it is
// taken from the containers.
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
