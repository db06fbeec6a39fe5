//go:build unix

package starts

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"
)

// A bareClient is the starter that makes the calls of a start one after the other, and nothing else: the lower
// bound of a node.
type bareClient struct {
	runtime internalapi.RuntimeService
	machine machine
	logs    string // directory

	mu        sync.Mutex
	sandboxes map[string]string // by name
}

func newBareClient(ctx context.Context, dir string, m machine) (*bareClient, error) {
	rt, err := cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(m.endpoint()).WithConnectionTimeout(time.Minute).Build(ctx)
	return &bareClient{runtime: rt, machine: m, logs: filepath.Join(dir, "logs"), sandboxes: map[string]string{}}, err
}

// start implements starter.
func (b *bareClient) start(ctx context.Context, name string) (milestones, error) {
	m := milestones{uid: types.UID("uid-" + name), bound: time.Now()}
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Uid: string(m.uid), Namespace: "default"}, LogDirectory: filepath.Join(b.logs, name),
		Linux: &runtimeapi.LinuxPodSandboxConfig{},
	}
	if err := os.MkdirAll(sandbox.LogDirectory, 0o755); err != nil {
		return m, err
	}
	id, err := b.runtime.RunPodSandbox(ctx, sandbox, "")
	if err != nil {
		return m, err
	}
	b.mu.Lock()
	b.sandboxes[name] = id
	b.mu.Unlock()
	if _, err := b.runtime.PodSandboxStatus(ctx, id, false); err != nil { // its addresses
		return m, err
	}
	spec := b.machine.container()
	container, err := b.runtime.CreateContainer(ctx, id, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: spec.Name}, Image: &runtimeapi.ImageSpec{Image: spec.Image}, Command: spec.Command,
		LogPath: "main.log", Linux: &runtimeapi.LinuxContainerConfig{},
	}, sandbox)
	if err != nil {
		return m, err
	}
	return m, b.runtime.StartContainer(ctx, container)
}

// remove implements starter.
func (b *bareClient) remove(ctx context.Context, name string, _ bool) error {
	b.mu.Lock()
	id := b.sandboxes[name]
	b.mu.Unlock()
	if err := b.runtime.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	return b.runtime.RemovePodSandbox(ctx, id)
}
