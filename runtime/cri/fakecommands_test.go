package cri_test

import (
	"context"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// What tests ask a fakeCRI, and have it do.

// did returns the calls that change something since the last did.
func (f *fakeCRI) did() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// read returns the reads since the last read.
func (f *fakeCRI) read() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	reads := f.reads
	f.reads = nil
	return reads
}

func (f *fakeCRI) sandboxes() []fakecri.Sandbox    { return f.mem.Sandboxes("") }
func (f *fakeCRI) containers() []fakecri.Container { return f.mem.Containers("") }

// newest returns the newest instance of the named container.
func (f *fakeCRI) newest(name string) *fakecri.Container {
	for _, c := range slices.Backward(f.containers()) {
		if c.Name == name {
			return &c
		}
	}
	return nil
}

// nameOf returns the name of a container.
func (f *fakeCRI) nameOf(id string) string {
	for _, c := range f.containers() {
		if c.ID == id {
			return c.Name
		}
	}
	return ""
}

// running returns the names of the containers that run, sorted.
func (f *fakeCRI) running() []string {
	var names []string
	for _, c := range f.containers() {
		if c.State == fakecri.Running {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// exits ends the named container, the newest that runs of the pod of the newest.
func (f *fakeCRI) exits(name string, code int32) {
	must(f.mem.Exit(f.newest(name).Pod, name, code))
}

// dies sets how long the named running container takes to exit after SIGTERM.
func (f *fakeCRI) dies(name string, after time.Duration) {
	must(f.mem.Linger(f.newest(name).Pod, name, after))
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

// put lets a sandbox and containers be there that the engine did not make.
func (f *fakeCRI) put(s *runtimeapi.PodSandboxStatus, containers ...*runtimeapi.ContainerStatus) {
	must(f.mem.Put(s, containers...))
}

// forgets removes every sandbox with its containers.
func (f *fakeCRI) forgets() {
	for _, s := range f.sandboxes() {
		must(f.mem.RemovePodSandbox(context.Background(), s.ID))
	}
}

// statusOf returns that of a sandbox.
func (f *fakeCRI) statusOf(id string) *runtimeapi.PodSandboxStatus {
	answer, err := f.mem.PodSandboxStatus(context.Background(), id, false)
	must(err)
	return answer.Status
}

// alter lets a container have another status than it had.
func (f *fakeCRI) alter(c *fakecri.Container, change func(*runtimeapi.ContainerStatus)) {
	answer, err := f.mem.ContainerStatus(context.Background(), c.ID, false)
	must(err)
	must(f.mem.RemoveContainer(context.Background(), c.ID))
	change(answer.Status)
	f.put(&runtimeapi.PodSandboxStatus{Id: c.SandboxID}, answer.Status)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// stops are the graces that the newest instance of a container was asked to stop
// with while it ran.
func (f *fakeCRI) stops(name string) []int64 {
	id := f.newest(name).ID
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.graces[id]
}
