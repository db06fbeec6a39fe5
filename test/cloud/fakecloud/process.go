package fakecloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/test/cloud"
)

// Exit codes of processes that a signal terminates: 128 + its number.
const (
	exitTERM = 143
	exitKILL = 137
)

// Behave sets the behavior of the processes of an image that are started from now on. The options
// fail, exit, oom, message, crashes, stop and ignoreTERM have an effect; an image whose processes
// fail does not exist.
func (c *Cloud) Behave(image string, b fake.Behavior) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.programs == nil {
		c.programs, c.launched = map[string]fake.Behavior{}, map[string]int{}
	}
	c.programs[image] = b
}

type process struct {
	cloud.Process
	token   string
	machine *machine
	program fake.Behavior
	up      chan struct{} // closed when no longer starting
	ended   chan struct{} // closed when terminated
	termed  bool          // TERM was sent
	kill    *time.Timer   // sends KILL; nil: not stopped
}

// StartProcess implements [cloud.Processes].
func (c *Cloud) StartProcess(ctx context.Context, id string, start cloud.NewProcess) error {
	return c.call(ctx, "StartProcess", func() (<-chan struct{}, error) {
		m, err := c.machineLocked(id)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(m.processes, func(p *process) bool { return p.token == start.Token }); i >= 0 {
			return m.processes[i].up, nil
		}
		program := c.programs[start.Image]
		switch {
		case m.State == cloud.Ended:
			return nil, fmt.Errorf("machine %s is stopped", id)
		case program.Fail != nil:
			return nil, fmt.Errorf("image %s: %w", start.Image, cloud.ErrNoImage)
		}
		p := &process{token: start.Token, machine: m, program: program, up: make(chan struct{}), ended: make(chan struct{})}
		p.ID, p.Tags, p.Image, p.Created = c.idLocked("p"), maps.Clone(start.Tags), start.Image, time.Now()
		m.processes = append(m.processes, p)
		if m.State == cloud.Running {
			c.launchLocked(p)
		}
		c.changedLocked(m)
		return p.up, nil
	})
}

func (c *Cloud) launchLocked(p *process) {
	time.AfterFunc(c.Launch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.State != cloud.Starting {
			return
		}
		p.State, p.Started = cloud.Running, time.Now()
		close(p.up)
		c.changedLocked(p.machine)
		e := p.program.Exit
		if e == nil {
			return
		}
		if c.launched[p.Image]++; e.Crashes == 0 || c.launched[p.Image] <= e.Crashes {
			c.exitAfter(e.After, p, e.Code, e.Message)
		}
	})
}

func (c *Cloud) exitAfter(d time.Duration, p *process, code int32, message string) *time.Timer {
	return time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.exitLocked(p, code, message)
	})
}

// exitLocked terminates a process, unless it is terminated.
func (c *Cloud) exitLocked(p *process, code int32, message string) {
	if p.State == cloud.Ended {
		return
	}
	p.Ended, p.ExitCode, p.Message = time.Now(), code, message
	if p.State == cloud.Starting {
		p.Started = p.Ended
		close(p.up)
	}
	p.State = cloud.Ended
	close(p.ended)
	if p.kill != nil {
		p.kill.Stop()
	}
	c.changedLocked(p.machine)
}

// StopProcess implements [cloud.Processes].
func (c *Cloud) StopProcess(ctx context.Context, id string, grace time.Duration) error {
	return c.call(ctx, "StopProcess", func() (<-chan struct{}, error) {
		p, err := c.processLocked(id)
		if err != nil {
			return nil, err
		}
		if p.kill != nil {
			p.kill.Stop()
		}
		switch {
		case p.State == cloud.Ended:
		case p.State == cloud.Starting || grace <= 0:
			c.exitLocked(p, exitKILL, "")
		default:
			p.kill = c.exitAfter(grace, p, exitKILL, "")
			switch {
			case p.termed || p.program.IgnoreTERM:
			case p.program.StopDelay <= 0:
				c.exitLocked(p, exitTERM, "")
			default:
				c.exitAfter(p.program.StopDelay, p, exitTERM, "")
			}
			p.termed = true
		}
		return p.ended, nil
	})
}

// RemoveProcess implements [cloud.Processes].
func (c *Cloud) RemoveProcess(ctx context.Context, id string) error {
	return c.call(ctx, "RemoveProcess", func() (<-chan struct{}, error) {
		p, err := c.processLocked(id)
		switch {
		case err != nil:
			return nil, err
		case p.State != cloud.Ended:
			return nil, fmt.Errorf("process %s is not terminated", id)
		}
		p.machine.processes = slices.DeleteFunc(p.machine.processes, func(other *process) bool { return other == p })
		c.changedLocked(p.machine)
		return nil, nil
	})
}
