package chaos

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Labels of the CRI's objects.
const (
	uidLabel  = "io.kubernetes.pod.uid"
	nameLabel = "io.kubernetes.container.name"
)

// An observation is a list of the runtime and of the processes.
type observation struct {
	boxes     []box
	instances []instance
}

// observeLoop observes the runtime and the processes several times a second, and on events of the
// runtime, until ctx is done.
func (w *world) observeLoop(ctx context.Context) {
	events := make(chan struct{}, 1)
	go w.listen(ctx, events)
	for ctx.Err() == nil {
		_, _ = w.observe(ctx) // fails while the runtime is down
		w.checker.processes(processes(w.Dir))
		select {
		case <-time.After(300 * time.Millisecond):
		case <-events:
		case <-ctx.Done():
		}
	}
}

// listen passes on events of the runtime until ctx is done. containerd before 1.7 has none.
func (w *world) listen(ctx context.Context, to chan<- struct{}) {
	for ctx.Err() == nil {
		events := make(chan *runtimeapi.ContainerEventResponse)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = w.cri.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) {})
		}()
		for open := true; open; {
			select {
			case <-events:
				select {
				case to <- struct{}{}:
				default:
				}
			case <-ended:
				open = false
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// observe lists the runtime and the processes and passes them to the checker.
func (w *world) observe(ctx context.Context) (s observation, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := w.cri.ListContainers(ctx, nil)
	from := w.cri
	if err != nil {
		// A broken connection is retried with a delay; a new one is not.
		if from, err = w.dial(ctx); err != nil {
			return s, err
		}
		defer func() { _ = from.Close(context.WithoutCancel(ctx)) }()
		if list, err = from.ListContainers(ctx, nil); err != nil {
			return s, err
		}
	}
	sandboxes, err := from.ListPodSandbox(ctx, nil)
	if err != nil {
		return s, err
	}
	for _, b := range sandboxes {
		one := box{SandboxStatus: runtime.SandboxStatus{ID: b.Id}, uid: b.Metadata.Uid, name: b.Metadata.Name}
		if b.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			one.State = runtime.SandboxReady
		}
		s.boxes = append(s.boxes, one)
	}
	for _, c := range list {
		s.instances = append(s.instances, instance{
			runtime.ContainerStatus{ID: runtimePrefix + c.Id, Name: c.Labels[nameLabel], RestartCount: int32(c.Metadata.Attempt), CreatedAt: time.Unix(0, c.CreatedAt), State: states[c.State]},
			c.Labels[uidLabel],
		})
	}
	w.ends(ctx, s.instances)
	w.checker.runtime(s.boxes, s.instances)
	return s, nil
}

// states are the states of containers; others are unknown.
var states = map[runtimeapi.ContainerState]runtime.ContainerState{
	runtimeapi.ContainerState_CONTAINER_CREATED: runtime.ContainerCreated,
	runtimeapi.ContainerState_CONTAINER_RUNNING: runtime.ContainerRunning,
	runtimeapi.ContainerState_CONTAINER_EXITED:  runtime.ContainerExited,
}

// ends queries the exits that were not observed before.
func (w *world) ends(ctx context.Context, list []instance) {
	for i := range list {
		is := &list[i]
		if is.State != runtime.ContainerExited || w.checker.exitObserved(*is) {
			continue
		}
		answer, err := w.cri.ContainerStatus(ctx, bareID(is.ID), false)
		if err != nil {
			is.State = runtime.ContainerUnknown // next time
			continue
		}
		is.ExitCode, is.FinishedAt = answer.Status.ExitCode, time.Unix(0, answer.Status.FinishedAt)
	}
}
