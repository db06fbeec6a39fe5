package cri_test

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// The calls that a fakeCRI notes.

func (f *fakeCRI) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	return call(ctx, f, "RunPodSandbox", config.Metadata.Name, func() (string, error) {
		return f.RuntimeService.RunPodSandbox(ctx, config, handler)
	})
}

func (f *fakeCRI) StopPodSandbox(ctx context.Context, id string) error {
	return act(ctx, f, "StopPodSandbox", f.podOf(id), func() error { return f.RuntimeService.StopPodSandbox(ctx, id) })
}

func (f *fakeCRI) RemovePodSandbox(ctx context.Context, id string) error {
	return act(ctx, f, "RemovePodSandbox", f.podOf(id), func() error { return f.RuntimeService.RemovePodSandbox(ctx, id) })
}

func (f *fakeCRI) CreateContainer(ctx context.Context, id string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	return call(ctx, f, "CreateContainer", config.Metadata.Name, func() (string, error) {
		return f.RuntimeService.CreateContainer(ctx, id, config, sandbox)
	})
}

func (f *fakeCRI) StartContainer(ctx context.Context, id string) error {
	name := f.nameOf(id)
	return act(ctx, f, "StartContainer", name, func() error {
		err := f.RuntimeService.StartContainer(ctx, id)
		running := map[string]int{} // by sandbox
		most := 0
		for _, c := range f.containers() {
			if c.Name == name && c.State == fakecri.Running {
				running[c.SandboxID]++
				most = max(most, running[c.SandboxID])
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.atOnce[name] = max(f.atOnce[name], most)
		return err
	})
}

func (f *fakeCRI) StopContainer(ctx context.Context, id string, timeout int64) error {
	return act(ctx, f, "StopContainer", f.nameOf(id), func() error {
		for _, c := range f.containers() {
			if c.ID == id && c.State == fakecri.Running {
				f.mu.Lock()
				f.graces[id] = append(f.graces[id], timeout)
				f.mu.Unlock()
			}
		}
		return f.RuntimeService.StopContainer(ctx, id, timeout)
	})
}

func (f *fakeCRI) RemoveContainer(ctx context.Context, id string) error {
	return act(ctx, f, "RemoveContainer", f.nameOf(id), func() error { return f.RuntimeService.RemoveContainer(ctx, id) })
}

// asked is the key of the name of the container in which a command is to run.
type asked struct{}

func (f *fakeCRI) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	name := f.nameOf(id)
	if err := f.begin(ctx, "ExecSync", name); err != nil {
		return nil, nil, err
	}
	return f.RuntimeService.ExecSync(context.WithValue(ctx, asked{}, name), id, cmd, timeout)
}

// answer is what every container does with a command.
func (f *fakeCRI) answer(ctx context.Context, cmd []string, _ runtime.Streams) (int32, error) {
	if f.exec == nil {
		return 0, nil
	}
	name, _ := ctx.Value(asked{}).(string)
	return 0, f.exec(ctx, name, cmd)
}

func (f *fakeCRI) noteRead(op string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, op)
}

func (f *fakeCRI) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	f.noteRead("ListPodSandbox")
	return f.RuntimeService.ListPodSandbox(ctx, filter)
}

func (f *fakeCRI) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	f.noteRead("ListContainers")
	return f.RuntimeService.ListContainers(ctx, filter)
}

// PodSandboxStatus tells of a second address, too.
func (f *fakeCRI) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	f.noteRead("PodSandboxStatus")
	answer, err := f.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	if err == nil {
		answer.Status.Network.AdditionalIps = []*runtimeapi.PodIP{{Ip: "fd00::7"}}
	}
	return answer, err
}

func (f *fakeCRI) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	f.noteRead("ContainerStatus")
	return f.RuntimeService.ContainerStatus(ctx, id, verbose)
}

// has makes images present, and returns the ID of the last.
func (f *fakeCRI) has(names ...string) (id string) {
	for _, name := range names {
		var err error
		id, err = f.mem.PullImage(context.Background(), &runtimeapi.ImageSpec{Image: name}, nil, nil)
		must(err)
	}
	return id
}

func (f *fakeCRI) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	if err := f.begin(ctx, "ImageStatus", spec.Image); err != nil {
		return nil, err
	}
	return f.ImageManagerService.ImageStatus(ctx, spec, verbose)
}

func (f *fakeCRI) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	if err := f.begin(ctx, "PullImage", spec.Image); err != nil {
		return "", err
	}
	f.mu.Lock()
	f.handlers = append(f.handlers, spec.RuntimeHandler)
	f.auths = append(f.auths, auth.GetUsername()+":"+auth.GetPassword())
	f.pulledFor = append(f.pulledFor, sandbox.GetMetadata().GetName())
	f.mu.Unlock()
	if f.pull != nil {
		if err := f.pull(ctx, spec.Image); err != nil {
			return "", err
		}
	}
	return f.ImageManagerService.PullImage(ctx, spec, auth, sandbox)
}
