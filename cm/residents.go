package cm

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// strayPasses is the maximum number of times that strays are moved in one pass of Run:
// they may start others meanwhile.
const strayPasses = 10

func checkResidents(cfg Config) error {
	if path := cfg.Processes.Agent; path != "" && cfg.Driver != cgroups.Systemd && len(cgroups.ParsePath(path, cfg.Driver)) == 0 {
		return fmt.Errorf("cm: Config.Processes.Agent: %q is the root of all cgroups", path)
	}
	if path := cfg.Processes.System; path != "" && len(cgroups.ParsePath(path, cfg.Driver)) == 0 {
		return fmt.Errorf("cm: Config.Processes.System: %q is no cgroup that the driver %s can move processes into", path, cfg.Driver)
	}
	for _, path := range []string{cfg.Processes.Agent, cfg.Processes.System} {
		if err := cgroups.ParsePath(path, cfg.Driver).Check(); err != nil {
			return fmt.Errorf("cm: %w", err)
		}
	}
	return nil
}

// settle moves the agent, and then the processes in the root cgroup, to their cgroups
// (rule cm-46).
func (m *Manager) settle(ctx context.Context) error {
	return errors.Join(m.settleAgent(ctx), m.settleSystem(ctx))
}

func (m *Manager) settleAgent(ctx context.Context) error {
	path := m.cfg.Processes.Agent
	if path == "" {
		return nil
	}
	name := cgroups.ParsePath(path, m.cfg.Driver)
	if len(name) > 0 {
		path = name.Path(m.cfg.Driver) // in full
	}
	inside, err := m.cfg.Tree.Inside(path, os.Getpid())
	switch {
	case err != nil:
		return fmt.Errorf("cm: %w", err)
	case inside:
		return nil
	case len(name) == 0:
		return fmt.Errorf("cm: this process is not in %s, where only systemd could put it; name a slice, or start it there", path)
	}
	if err := m.cfg.Tree.Move(ctx, name, os.Getpid()); err != nil {
		return fmt.Errorf("cm: this process: %w", err)
	}
	return nil
}

func (m *Manager) settleSystem(ctx context.Context) error {
	if m.cfg.Processes.System == "" {
		return nil
	}
	var moved error
	for range strayPasses {
		strays, err := m.cfg.Tree.Strays()
		if err != nil {
			return fmt.Errorf("cm: %w", err)
		}
		if len(strays) == 0 {
			return nil
		}
		if moved = m.cfg.Tree.Move(ctx, cgroups.ParsePath(m.cfg.Processes.System, m.cfg.Driver), strays...); ctx.Err() != nil {
			break
		}
	}
	if moved != nil {
		return fmt.Errorf("cm: processes of the system: %w", moved)
	}
	return nil // they came just now
}
