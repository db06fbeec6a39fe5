//go:build unix

package footprint

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// concurrencies are those with which the bare client creates pods; the best one counts.
var concurrencies = []int{1, 2, 4, 8}

// measureBare measures a CRI client that only makes the three calls for each pod that no node can
// omit. It is the lower bound for the time until all pods run, for the CPU time until then, and for
// the time of a restart, and shows what containerd does without calls.
//
// With last it adds the figures of running pods to running: they do not depend on how the pods were
// created.
func measureBare(ctx context.Context, t testing.TB, o options, n, concurrency int, running figures, last bool) (figures, error) {
	w := newWorld(t, false)
	rt, err := cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(w.daemon.Endpoint).WithConnectionTimeout(time.Minute).Build(ctx)
	if err != nil {
		return nil, err
	}
	defer rt.Close(ctx)
	b := bareClient{world: w, runtime: rt, sandboxes: make([]string, n), containers: make([]string, n)}
	f := figures{}
	before, err := w.sample(ctx, os.Getpid())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range n {
		group.Go(func() error { return b.createPod(groupCtx, i) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	end, err := awaitStarts(ctx, w.started, n)
	if err != nil {
		return nil, err
	}
	after, err := w.sample(ctx, os.Getpid())
	if err != nil {
		return nil, err
	}
	f[allRun] = end.Sub(began).Seconds()
	f.addStart(before, after, false)
	if !last {
		return f, nil
	}
	if err := w.measureIdleDaemon(ctx, o, running); err != nil {
		return nil, err
	}
	restarts, alone, err := b.restart(ctx, min(o.kills, n))
	running.addTimes(restart, restartMax, restarts)
	running.addTimes(createStart, createStartMax, alone)
	return f, err
}

type bareClient struct {
	world                 *world
	runtime               internalapi.RuntimeService
	sandboxes, containers []string // by pod
}

func (b *bareClient) sandbox(i int) *runtimeapi.PodSandboxConfig {
	name := podName(i)
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		LogDirectory: b.world.Path("logs", name),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    filepath.Join(b.world.Cgroup(), name),
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaces()},
		},
	}
}

func (b *bareClient) container(i, attempt int) *runtimeapi.ContainerConfig {
	name := podName(i)
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main", Attempt: uint32(attempt)},
		Image:    &runtimeapi.ImageSpec{Image: lab.Busybox}, Command: command(name),
		Envs:    []*runtimeapi.KeyValue{{Key: markVar, Value: []byte(filepath.Join(b.world.started, name))}},
		Mounts:  []*runtimeapi.Mount{{ContainerPath: startedDir, HostPath: b.world.started}},
		LogPath: fmt.Sprintf("main/%d.log", attempt),
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       &runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 1000},
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: namespaces()},
		},
	}
}

func namespaces() *runtimeapi.NamespaceOption {
	return &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
}

func (b *bareClient) createPod(ctx context.Context, i int) (err error) {
	if err := os.MkdirAll(b.world.Path("logs", podName(i), "main"), 0o755); err != nil {
		return err
	}
	if b.sandboxes[i], err = b.runtime.RunPodSandbox(ctx, b.sandbox(i), ""); err != nil {
		return err
	}
	return b.startContainer(ctx, i, 0)
}

func (b *bareClient) startContainer(ctx context.Context, i, attempt int) error {
	id, err := b.runtime.CreateContainer(ctx, b.sandboxes[i], b.container(i, attempt), b.sandbox(i))
	if err != nil {
		return err
	}
	b.containers[i] = id
	return b.runtime.StartContainer(ctx, id)
}

// restart kills the containers of n pods, and starts the next container of each as soon as an event of
// the runtime reports the exit. It returns the times from the kill to the start of the next container,
// and those of its creation and start alone.
func (b *bareClient) restart(ctx context.Context, n int) (all, alone []time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := make(chan *runtimeapi.ContainerEventResponse, 1000) // of all pods
	connected := make(chan struct{})
	go func() {
		cancel(b.runtime.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { close(connected) }))
	}()
	select {
	case <-connected:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	for i := range n {
		file := b.world.Path("started", podName(i))
		pid := findProcess(markVar + "=" + file)
		if pid == 0 {
			return nil, nil, fmt.Errorf("no process of %s", podName(i))
		}
		killed := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return nil, nil, os.NewSyscallError("kill", err)
		}
		if err := awaitExit(ctx, events, b.containers[i]); err != nil {
			return nil, nil, err
		}
		at := time.Now()
		if err := b.startContainer(ctx, i, 1); err != nil {
			return nil, nil, err
		}
		again, err := awaitRestart(ctx, file, at)
		if err != nil {
			return nil, nil, err
		}
		all, alone = append(all, again.Sub(killed)), append(alone, again.Sub(at))
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
	return all, alone, nil
}

// awaitExit waits for the event of the exit of a container.
func awaitExit(ctx context.Context, events <-chan *runtimeapi.ContainerEventResponse, id string) error {
	for {
		select {
		case e := <-events:
			if e.GetContainerId() == id && e.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
