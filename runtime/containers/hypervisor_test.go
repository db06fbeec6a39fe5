package containers_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
)

// A Hypervisor is the API of a machine manager as several products have it: eight methods. Names are
// unique. Create fails with errExists if the name is in use.
type Hypervisor interface {
	Create(ctx context.Context, spec MachineSpec) (id string, err error)
	Start(ctx context.Context, id string) error
	Stop(ctx context.Context, id string, force bool) error // returns when the request was accepted
	Delete(ctx context.Context, id string) error
	List(ctx context.Context) ([]string, error)
	Inspect(ctx context.Context, id string) (Machine, error)
	Exec(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error)
	Logs(ctx context.Context, id string) (string, error)
}

// A MachineSpec is a machine to create.
type MachineSpec struct {
	Name, Image string
	Command     []string
	Env         []string
	MilliCPU    int64
	Memory      int64
	Metadata    map[string]string
}

// A Machine is the state of a machine: created, running or stopped.
type Machine struct {
	MachineSpec
	ID, Status, IP   string
	Started, Stopped time.Time
	ExitCode         int32
}

var (
	errExists  = errors.New("name is in use")
	errUnknown = errors.New("no such machine")
)

// Adapter begins here: a Hypervisor as a containers.Backend.

const recordKey = "kubeparts/record"

// machines is a Backend and an Execer over a Hypervisor.
type machines struct{ Hypervisor }

func (m machines) Run(ctx context.Context, c containers.Container) (string, error) {
	spec := MachineSpec{
		Name: c.Key, Image: c.Image, Command: slices.Concat(c.Command, c.Args), MilliCPU: c.CPUMillis, Memory: c.Memory,
		Metadata: map[string]string{recordKey: c.Record},
	}
	for _, e := range c.Env {
		spec.Env = append(spec.Env, e.Name+"="+e.Value)
	}
	id, err := m.Create(ctx, spec)
	if errors.Is(err, errExists) {
		id, err = m.find(ctx, c.Key)
	}
	if err != nil {
		return "", err
	}
	vm, err := m.Inspect(ctx, id)
	if err != nil || vm.Status != "created" {
		return id, err // an earlier call has started it
	}
	return id, m.Start(ctx, id)
}

// find returns the ID of the machine with the name.
func (m machines) find(ctx context.Context, name string) (string, error) {
	all, err := m.inspectAll(ctx)
	for _, vm := range all {
		if vm.Name == name {
			return vm.ID, nil
		}
	}
	return "", errors.Join(err, errUnknown)
}

func (m machines) inspectAll(ctx context.Context) (all []Machine, err error) {
	ids, err := m.Hypervisor.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		vm, err := m.Inspect(ctx, id)
		if errors.Is(err, errUnknown) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, vm)
	}
	return all, nil
}

func (m machines) Stop(ctx context.Context, id string, grace time.Duration) error {
	deadline := time.Now().Add(grace)
	for force := grace <= 0; ; force = !time.Now().Before(deadline) {
		vm, err := m.Inspect(ctx, id)
		if errors.Is(err, errUnknown) || vm.Status == "stopped" {
			return nil
		}
		if err == nil {
			err = m.Hypervisor.Stop(ctx, id, force || vm.Status == "created")
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(100*time.Millisecond, max(time.Until(deadline), 10*time.Millisecond))):
		}
	}
}

// ReadLog copies what the log has more than before, each second.
func (m machines) ReadLog(ctx context.Context, id string, skip containers.LogOffset, s runtime.Streams) error {
	for at := int(skip.Stdout); ; {
		vm, err := m.Inspect(ctx, id) // before the log: one that has stopped prints no more
		if err != nil {
			return err
		}
		text, err := m.Logs(ctx, id)
		n, _ := io.WriteString(s.Stdout, text[min(at, len(text)):])
		if at += n; err != nil || vm.Status == "stopped" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (m machines) Remove(ctx context.Context, id string) error {
	if err := m.Delete(ctx, id); !errors.Is(err, errUnknown) {
		return err
	}
	return nil
}

func (m machines) List(ctx context.Context) (states []containers.State, err error) {
	all, err := m.inspectAll(ctx)
	for _, vm := range all {
		phases := map[string]containers.Phase{"created": containers.Queued, "running": containers.Running, "stopped": containers.Exited}
		states = append(states, containers.State{
			ID: vm.ID, Key: vm.Name, Record: vm.Metadata[recordKey], Phase: phases[vm.Status],
			StartedAt: vm.Started, FinishedAt: vm.Stopped, ExitCode: vm.ExitCode, IP: vm.IP,
		})
	}
	return states, err
}

// Adapter ends here.
