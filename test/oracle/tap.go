package oracle

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	node "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/status"
)

// A tap records a kubelet from outside in the format of package sim/record: the calls of the CRI between the kubelet
// and its runtime, and the pods of a watch. Statuses and deletions are those that the watch reports. Exec probes are
// recognized by their commands.
type tap struct {
	recorder *record.Recorder
	runtime  string // its name
	wrapped  node.Config
	started  chan struct{} // closed when the pods so far are recorded

	mu         sync.Mutex
	set        func([]*v1.Pod) // nil: run was not called
	pods       []*v1.Pod
	containers map[string]containerOf // by ID
}

// A containerOf is the pod and the name of a container.
type containerOf struct {
	pod  types.UID
	name string
}

// newTap returns a tap of a kubelet that has not been started, whose recording is in dir.
func newTap(dir, name, runtimeName string) (*tap, error) {
	const queue, file = 256 << 20, 1 << 30
	recorder, err := record.New(record.Config{Dir: dir, Node: name, QueueBytes: queue, MaxBytes: file})
	if err != nil {
		return nil, err
	}
	t := &tap{recorder: recorder, runtime: runtimeName, started: make(chan struct{}), containers: map[string]containerOf{}}
	t.wrapped = node.Config{
		Sources:    map[string]podsource.PodSource{podsource.APISource: podsource.Func(t.source)},
		Sink:       new(status.MemorySink),
		Subsystems: node.Subsystems{Probes: prober.Handlers{Exec: execProbe(nil)}},
	}
	return t, recorder.Agent(&t.wrapped)
}

// source is a podsource.PodSource whose sets observe determines.
func (t *tap) source(ctx context.Context, set func([]*v1.Pod)) error {
	t.mu.Lock()
	if t.set = set; len(t.pods) > 0 {
		set(t.pods)
	}
	t.mu.Unlock()
	close(t.started)
	<-ctx.Done()
	return nil
}

// run writes the recording until ctx is done.
func (t *tap) run(ctx context.Context) error {
	go func() { _ = t.wrapped.Sources[podsource.APISource].Run(ctx, func([]*v1.Pod) {}) }()
	return t.recorder.Run(ctx)
}

// observe records a version of a pod, and the status or the deletion that it shows.
func (t *tap) observe(ctx context.Context, pod *v1.Pod, deleted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
	t.pods = slices.Clone(t.pods)
	switch {
	case deleted:
		if pod.DeletionTimestamp != nil {
			_ = t.wrapped.Sink.DeletePod(ctx, pod) // the memory does not fail
		}
		t.pods = slices.DeleteFunc(t.pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
	case i < 0:
		t.pods = append(t.pods, pod)
	default:
		if !reflect.DeepEqual(t.pods[i].Status, pod.Status) {
			_ = t.wrapped.Sink.UpdatePodStatus(ctx, pod, pod.Status)
		}
		t.pods[i] = pod
	}
	if t.set != nil {
		t.set(t.pods)
	}
}

// services returns recorded services in place of those of a runtime.
func (t *tap) services(rt internalapi.RuntimeService, images internalapi.ImageManagerService) (internalapi.RuntimeService, internalapi.ImageManagerService) {
	return t.recorder.RuntimeService(tappedRuntime{rt, t}), t.recorder.ImageService(images)
}

// A tappedRuntime records exec probes.
type tappedRuntime struct {
	internalapi.RuntimeService
	tap *tap
}

// Unwrap implements compose.Wrapper.
func (r tappedRuntime) Unwrap() any { return r.RuntimeService }

func (r tappedRuntime) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (string, error) {
	id, err := r.RuntimeService.CreateContainer(ctx, sandbox, config, pod)
	if err == nil {
		r.tap.mu.Lock()
		r.tap.containers[id] = containerOf{types.UID(pod.GetMetadata().GetUid()), config.GetMetadata().GetName()}
		r.tap.mu.Unlock()
	}
	return id, err
}

// An execProbe is a prober.Handler that runs the command of a probe.
type execProbe func(ctx context.Context) error

func (p execProbe) Probe(ctx context.Context, _ prober.Target) (prober.Outcome, error) {
	if p(ctx) != nil {
		return prober.Outcome{Result: runtime.ProbeFailure}, nil
	}
	return prober.Outcome{Result: runtime.ProbeSuccess}, nil
}

func (r tappedRuntime) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	exec := func(ctx context.Context) error {
		stdout, stderr, err = r.RuntimeService.ExecSync(ctx, id, cmd, timeout)
		return err
	}
	target, ok := r.tap.probe(id, cmd)
	if !ok {
		return stdout, stderr, exec(ctx)
	}
	_, _ = r.tap.recorder.Handlers(prober.Handlers{Exec: execProbe(exec)}).Exec.Probe(ctx, target)
	return stdout, stderr, err
}

// probe returns the probe that a command belongs to; false if a hook or a client runs it.
func (t *tap) probe(id string, cmd []string) (prober.Target, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.containers[id]
	for _, pod := range t.pods {
		if pod.UID != of.pod {
			continue
		}
		for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				c := &list[i]
				for _, kind := range []prober.Kind{prober.Startup, prober.Readiness, prober.Liveness} {
					if p := kind.Probe(c); c.Name == of.name && p != nil && p.Exec != nil && slices.Equal(p.Exec.Command, cmd) {
						return prober.Target{Pod: pod, Container: c, ContainerID: t.runtime + "://" + id, Kind: kind, Probe: p}, true
					}
				}
			}
		}
	}
	return prober.Target{}, false
}
