package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Watch implements [runtime.Watcher] with the CRI's container events. It returns an error
// immediately if the runtime has none, as containerd 1.6.
func (r *Runtime) Watch(ctx context.Context, changed func(uid types.UID)) error {
	events := make(chan *runtimeapi.ContainerEventResponse, 64)
	ended := make(chan error, 1)
	r.announcements.opened()
	go func() { ended <- r.cfg.Runtime.GetContainerEvents(r.quiet(ctx), events, nil) }()
	for { // until the stream has ended, so that its sender does not block forever
		select {
		case e := <-events:
			if uid := podOfEvent(e); uid != "" && r.cfg.Providers.Ledger.Owns(uid) && ctx.Err() == nil {
				r.announcements.received(uid, e)
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

// announcedStatus returns the status of a pod that its last event contains; nil if that may be older
// than an inspection.
func (r *Runtime) announcedStatus(uid types.UID) *runtime.PodStatus {
	e, ready, ok := r.announcements.take(uid)
	if !ok {
		return nil
	}
	st := &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}
	if e == nil {
		return st
	}
	sandbox := e.PodSandboxStatus
	if verifySandbox(&runtimeapi.PodSandboxStatusResponse{Status: sandbox}) != nil {
		return nil
	}
	st.Name, st.Namespace = sandbox.Metadata.Name, sandbox.Metadata.Namespace
	st.Source = sandbox.Annotations[runtime.ConfigSourceAnnotation]
	switch {
	case sandbox.State != runtimeapi.PodSandboxState_SANDBOX_READY:
		st.Sandboxes = []runtime.SandboxStatus{describeSandbox(sandbox)}
	case ready == nil || ready.ID != sandbox.Id:
		return nil
	default:
		st.Sandboxes = []runtime.SandboxStatus{*ready}
	}
	rec := r.checkpoints.get(uid)
	mounted := map[string][]string{}
	for _, c := range e.ContainersStatuses {
		if c.State == runtimeapi.ContainerState_CONTAINER_EXITED && r.cachedTermination(st, c.Id, mounted) {
			continue
		}
		if verifyContainer(&runtimeapi.ContainerStatusResponse{Status: c}) != nil {
			return nil
		}
		st.Containers = append(st.Containers, r.describe(sandbox.Id, c, rec))
		mounted[c.Id] = mountedImages(c)
	}
	r.complete(st, mounted)
	return st
}
