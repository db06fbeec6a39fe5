//go:build unix

package main

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
// omit. It is the lower bound for the time until all pods run, and for that of a restart.
func measureBare(ctx context.Context, t testing.TB, o options, n, concurrency int) (figures, error) {
	w := newWorld(t, false)
	rt, err := cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(w.daemon.Endpoint).WithConnectionTimeout(time.Minute).Build(ctx)
	if err != nil {
		return nil, err
	}
	defer rt.Close(ctx)
	b := bareClient{world: w, runtime: rt, sandboxes: make([]string, n)}
	f := figures{}
	before, err := w.sample(ctx, 0)
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
	last, err := awaitStarts(ctx, w.started, n)
	if err != nil {
		return nil, err
	}
	after, err := w.sample(ctx, 0)
	if err != nil {
		return nil, err
	}
	f[allRun] = last.Sub(began).Seconds()
	f.addStart(before, after, false)
	restarts, err := b.restart(ctx, min(o.kills, n))
	f.addTimes(restart, restartMax, restarts)
	return f, err
}

type bareClient struct {
	world     *world
	runtime   internalapi.RuntimeService
	sandboxes []string // by pod
}

func (b *bareClient) sandbox(i int) *runtimeapi.PodSandboxConfig {
	name := podName(i)
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		LogDirectory: b.world.path("logs", name),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    filepath.Join(b.world.cgroup(), name),
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
	if err := os.MkdirAll(b.world.path("logs", podName(i), "main"), 0o755); err != nil {
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
	return b.runtime.StartContainer(ctx, id)
}

// restart kills the containers of n pods, and returns the time from the creation to the start of the
// next container of each.
func (b *bareClient) restart(ctx context.Context, n int) (times []time.Duration, err error) {
	for i := range n {
		file := b.world.path("started", podName(i))
		pid := findProcess(markVar + "=" + file)
		if pid == 0 {
			return nil, fmt.Errorf("no process of %s", podName(i))
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return nil, os.NewSyscallError("kill", err)
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
		at := time.Now()
		if err := b.startContainer(ctx, i, 1); err != nil {
			return nil, err
		}
		again, err := awaitRestart(ctx, file, at)
		if err != nil {
			return nil, err
		}
		times = append(times, again.Sub(at))
	}
	return times, nil
}
