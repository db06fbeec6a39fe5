package oracle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	criserve "github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/status"
)

// A tap records a kubelet from outside in the format of package sim/record: the calls of the CRI between the kubelet
// and its runtime, and the pods of a watch. Statuses and deletions are those that the watch reports. Exec probes are
// recognized by their commands. Each process of the kubelet has a recording of its own.
type tap struct {
	dir     string // of the recordings
	node    string // its name
	runtime string // its name

	mu         sync.Mutex
	processes  int                                       // number so far
	process    *process                                  // the last one; nil: none has connected
	pods       []*v1.Pod                                 // without managed fields
	managed    map[types.UID][]metav1.ManagedFieldsEntry // of pods
	containers map[string]containerOf                    // by ID
}

// A containerOf is the pod and the name of a container.
type containerOf struct {
	pod  types.UID
	name string
}

// newTap returns a tap whose recordings are in directories below dir, which must not contain others.
func newTap(dir, node, runtimeName string) (*tap, error) {
	if _, err := os.Stat(processDir(dir, 1)); err == nil {
		return nil, fmt.Errorf("%s contains a recording", dir)
	}
	return &tap{dir: dir, node: node, runtime: runtimeName, managed: map[types.UID][]metav1.ManagedFieldsEntry{}, containers: map[string]containerOf{}}, nil
}

// processDir returns the directory of the recording of a process, from 1.
func processDir(dir string, process int) string {
	return filepath.Join(dir, fmt.Sprintf("process-%03d", process))
}

// serve passes the calls of kubelets on to the runtime of config, whose Listener it sets, until ctx is done. A
// kubelet has connections as long as it runs: when the last one is closed, its recording ends, and the next
// connection is of another process.
func (t *tap) serve(ctx context.Context, listener net.Listener, config criserve.Config) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		<-ctx.Done()
		return listener.Close()
	})
	all.Go(func() error {
		var last *process
		for {
			conn, err := listener.Accept()
			if ctx.Err() != nil {
				return nil
			} else if err != nil {
				return err
			}
			if last.add(conn) {
				continue
			}
			p, err := t.newProcess(listener.Addr())
			if err != nil {
				return errors.Join(err, conn.Close())
			}
			p.add(conn)
			all.Go(func() error { return p.run(ctx, config) })
			last = p
		}
	})
	return all.Wait()
}

// observe records a version of a pod, and the status or the deletion that it shows.
func (t *tap) observe(ctx context.Context, pod *v1.Pod, deleted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, is := t.managed[pod.UID], pod.ManagedFields
	own := *pod // whose other fields are not changed
	pod = &own
	pod.ManagedFields = nil
	sink := status.Sink(new(status.MemorySink)) // its calls do not fail
	if t.process != nil {
		sink = t.process.wrapped.Sink
	}
	i := slices.IndexFunc(t.pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
	t.pods = slices.Clone(t.pods)
	t.managed[pod.UID] = is
	switch {
	case deleted:
		if pod.DeletionTimestamp != nil {
			_ = sink.DeletePod(ctx, pod)
		}
		t.pods = slices.DeleteFunc(t.pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
		delete(t.managed, pod.UID)
	case i < 0:
		t.pods = append(t.pods, pod)
	default:
		if !reflect.DeepEqual(t.pods[i].Status, pod.Status) && !writtenByOther(was, is) {
			_ = sink.UpdatePodStatus(ctx, pod, pod.Status)
		}
		t.pods[i] = pod
	}
	if t.process != nil {
		t.process.set(t.pods)
	}
}

// kubeletManager is the name of a kubelet as the manager of fields.
const kubeletManager = "kubelet"

// writtenByOther reports whether another client than the kubelet has written a status, whose fields were managed as in
// before: the time of that client's entry has changed, and the kubelet's has not. Times have a resolution of a second.
func writtenByOther(before, after []metav1.ManagedFieldsEntry) (other bool) {
	times := map[string]*metav1.Time{}
	for _, m := range before {
		if m.Subresource == statusSubresource {
			times[m.Manager] = m.Time
		}
	}
	for _, m := range after {
		if m.Subresource != statusSubresource || m.Time.Equal(times[m.Manager]) {
			continue
		}
		if m.Manager == kubeletManager {
			return false
		}
		other = true
	}
	return other
}

const statusSubresource = "status"

// A tappedRuntime records exec probes.
type tappedRuntime struct {
	internalapi.RuntimeService
	tap      *tap
	recorder *record.Recorder
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
	_, _ = r.recorder.Handlers(prober.Handlers{Exec: execProbe(exec)}).Exec.Probe(ctx, target)
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
