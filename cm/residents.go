package cm

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A mover is a Tree that can list and move processes.
type mover interface {
	// Inside reports whether the process is in or below the cgroup at a path in the
	// notation of the driver.
	Inside(path string, pid int) (bool, error)

	// Strays returns the processes directly in the root cgroup, except process 1 and
	// kernel threads.
	Strays() ([]int, error)

	// Move moves processes into the cgroup, which it creates if it does not exist.
	Move(ctx context.Context, name cgroups.Name, pids ...int) error
}

// strayPasses is the maximum number of times that strays are moved in one pass of Run:
// they may start others meanwhile.
const strayPasses = 10

func checkResidents(cfg Config) error {
	if cfg.Processes.Agent == "" && cfg.Processes.System == "" {
		return nil
	}
	if _, ok := cfg.Tree.(mover); !ok {
		return errors.New("cm: Config.Processes.Agent, Config.Processes.System: Config.Tree can't move processes")
	}
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
	tree, ok := m.cfg.Tree.(mover)
	if !ok {
		return nil
	}
	return errors.Join(m.settleAgent(ctx, tree), m.settleSystem(ctx, tree))
}

func (m *Manager) settleAgent(ctx context.Context, tree mover) error {
	path := m.cfg.Processes.Agent
	if path == "" {
		return nil
	}
	name := cgroups.ParsePath(path, m.cfg.Driver)
	if len(name) > 0 {
		path = name.Path(m.cfg.Driver) // in full
	}
	inside, err := tree.Inside(path, os.Getpid())
	switch {
	case err != nil:
		return fmt.Errorf("cm: %w", err)
	case inside:
		return nil
	case len(name) == 0:
		return fmt.Errorf("cm: this process is not in %s, where only systemd could put it; name a slice, or start it there", path)
	}
	if err := tree.Move(ctx, name, os.Getpid()); err != nil {
		return fmt.Errorf("cm: this process: %w", err)
	}
	return nil
}

func (m *Manager) settleSystem(ctx context.Context, tree mover) error {
	if m.cfg.Processes.System == "" {
		return nil
	}
	var moved error
	for range strayPasses {
		strays, err := tree.Strays()
		if err != nil {
			return fmt.Errorf("cm: %w", err)
		}
		if len(strays) == 0 {
			return nil
		}
		if moved = tree.Move(ctx, cgroups.ParsePath(m.cfg.Processes.System, m.cfg.Driver), strays...); ctx.Err() != nil {
			break
		}
	}
	if moved != nil {
		return fmt.Errorf("cm: processes of the system: %w", moved)
	}
	return nil // they came just now
}
