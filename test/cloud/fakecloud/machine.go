package fakecloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/test/cloud"
)

type machine struct {
	cloud.Machine // without processes
	token         string
	processes     []*process
	up            chan struct{} // closed when no longer starting
}

// ListMachines implements [cloud.Machines].
func (c *Cloud) ListMachines(ctx context.Context, tags map[string]string) (list []cloud.Machine, err error) {
	err = c.call(ctx, "ListMachines", func() (<-chan struct{}, error) {
		for _, m := range c.machines {
			if !has(m.Tags, tags) {
				continue
			}
			shown := m.Machine
			shown.Tags = maps.Clone(m.Tags)
			for _, p := range m.processes {
				ps := p.Process
				ps.Tags = maps.Clone(p.Tags)
				shown.Processes = append(shown.Processes, ps)
			}
			list = append(list, shown)
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// CreateMachine implements [cloud.Machines].
func (c *Cloud) CreateMachine(ctx context.Context, create cloud.NewMachine) (id string, err error) {
	err = c.call(ctx, "CreateMachine", func() (<-chan struct{}, error) {
		if i := slices.IndexFunc(c.machines, func(m *machine) bool { return m.token == create.Token }); i >= 0 {
			id = c.machines[i].ID
			return c.machines[i].up, nil
		}
		m := &machine{token: create.Token, up: make(chan struct{})}
		m.ID, m.Tags, m.Created = c.idLocked("vm"), maps.Clone(create.Tags), time.Now()
		id = m.ID
		c.machines = append(c.machines, m)
		time.AfterFunc(c.Boot, func() { c.boot(m) })
		c.changedLocked(m)
		return m.up, nil
	})
	return id, err
}

func (c *Cloud) boot(m *machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.State != cloud.Starting {
		return
	}
	m.State = cloud.Running
	m.IP = fmt.Sprintf("10.0.%d.%d", c.serial/250%250, c.serial%250+1)
	close(m.up)
	for _, p := range m.processes {
		c.launchLocked(p)
	}
	c.changedLocked(m)
}

// TagMachine implements [cloud.Machines].
func (c *Cloud) TagMachine(ctx context.Context, id string, tags map[string]string) error {
	return c.call(ctx, "TagMachine", func() (<-chan struct{}, error) {
		m, err := c.machineLocked(id)
		if err == nil {
			maps.Copy(m.Tags, tags)
		}
		return nil, err
	})
}

// StopMachine implements [cloud.Machines].
func (c *Cloud) StopMachine(ctx context.Context, id string) error {
	return c.call(ctx, "StopMachine", func() (<-chan struct{}, error) {
		m, err := c.machineLocked(id)
		if err == nil {
			c.endLocked(m)
		}
		return nil, err
	})
}

// Crash stops a machine, as a failure of the cloud does.
func (c *Cloud) Crash(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.machineLocked(id)
	if err == nil {
		c.endLocked(m)
	}
	return err
}

func (c *Cloud) endLocked(m *machine) {
	if m.State == cloud.Ended {
		return
	}
	for _, p := range m.processes {
		c.exitLocked(p, exitKILL, "")
	}
	if m.State == cloud.Starting {
		close(m.up)
	}
	m.State, m.IP = cloud.Ended, ""
	c.changedLocked(m)
}

// DestroyMachine implements [cloud.Machines].
func (c *Cloud) DestroyMachine(ctx context.Context, id string) error {
	return c.call(ctx, "DestroyMachine", func() (<-chan struct{}, error) {
		m, err := c.machineLocked(id)
		if err != nil {
			return nil, err
		}
		c.endLocked(m)
		c.machines = slices.DeleteFunc(c.machines, func(other *machine) bool { return other == m })
		c.changedLocked(m)
		return nil, nil
	})
}
