package chaos

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
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
		w.judge.processes(processes(w.Dir))
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

// observe lists the runtime and the processes and passes them to the judge.
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
		s.boxes = append(s.boxes, box{id: b.Id, uid: b.Metadata.Uid, name: b.Metadata.Name, ready: b.State == runtimeapi.PodSandboxState_SANDBOX_READY})
	}
	for _, c := range list {
		s.instances = append(s.instances, instance{
			id: c.Id, uid: c.Labels[uidLabel], container: c.Labels[nameLabel], attempt: c.Metadata.Attempt, created: time.Unix(0, c.CreatedAt),
			running: c.State == runtimeapi.ContainerState_CONTAINER_RUNNING, exited: c.State == runtimeapi.ContainerState_CONTAINER_EXITED,
		})
	}
	w.ends(ctx, s.instances)
	w.judge.runtime(s.boxes, s.instances)
	return s, nil
}

// ends queries the exits that the judge has not observed.
func (w *world) ends(ctx context.Context, list []instance) {
	asked := map[string]*runtimeapi.ContainerStatus{}
	for _, id := range w.judge.exits(list) {
		if answer, err := w.cri.ContainerStatus(ctx, id, false); err == nil {
			asked[id] = answer.Status
		}
	}
	for i := range list {
		is := &list[i]
		if end := asked[is.id]; end != nil {
			is.code, is.finished = end.ExitCode, time.Unix(0, end.FinishedAt)
		} else if is.exited {
			is.exited = w.judge.observedExit(is.uid, is.id) // next time
		}
	}
}
