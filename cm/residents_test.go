package cm_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

func TestProcessesAreMovedToWhereTheyBelong(t *testing.T) { // cm-46
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, cm.Config{Processes: cm.ProcessCgroups{Agent: "/agent", System: "/sys/all"}})
		agent, sys := cgroups.Name{"agent"}, cgroups.Name{"sys", "all"}
		n.tree.Run(nil, false, 17, os.Getpid(), 18)
		in := func(name cgroups.Name, pid int) bool {
			is, err := n.tree.Inside(name.Path(cgroups.Cgroupfs), pid)
			require.NoError(t, err)
			return is
		}
		require.NoError(t, n.Setup(t.Context()))
		assert.True(t, in(agent, os.Getpid()))
		assert.True(t, in(sys, 17) && in(sys, 18))

		// Each minute new processes are moved; processes below the target cgroup stay.
		n.tree.Run(nil, false, 19)
		require.NoError(t, n.tree.Move(t.Context(), agent.Child("below"), os.Getpid()))
		go func() { _ = n.Run(t.Context()) }()
		time.Sleep(61 * time.Second)
		assert.True(t, in(sys, 19))
		assert.True(t, in(agent.Child("below"), os.Getpid()))
		assert.False(t, in(sys, os.Getpid()))

		// A process that cannot be moved is an error of that pass; the manager runs nevertheless.
		n.tree.Fail(func(op string, _ cgroups.Name) error {
			if op == "move" {
				return errors.New("device or resource busy")
			}
			return nil
		})
		n.tree.Run(nil, false, 20)
		assert.ErrorContains(t, n.Sync(t.Context()), "processes of the system: device or resource busy")
		require.NoError(t, n.Setup(t.Context()))
		n.tree.Fail(nil)
		require.NoError(t, n.Sync(t.Context()))
		assert.True(t, in(sys, 20))
	})
}

func TestProcessesAreNotMovedByDefault(t *testing.T) { // cm-46
	n := newNode(t, cm.Config{})
	n.tree.Run(nil, false, 17, os.Getpid())
	require.NoError(t, n.Setup(t.Context()))
	require.NoError(t, n.Sync(t.Context()))
	strays, err := n.tree.Strays()
	require.NoError(t, err)
	assert.Equal(t, []int{17, os.Getpid()}, strays)
}

func TestInvalidTargetsOfAMove(t *testing.T) { // cm-46
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Driver: cgroups.Systemd})
	for wantErr, cfg := range map[string]cm.Config{
		`Config.Processes.Agent: "/" is the root`:                            {Tree: tree, Processes: cm.ProcessCgroups{Agent: "/"}},
		`Config.Processes.System: "/" is no cgroup`:                          {Tree: tree, Processes: cm.ProcessCgroups{System: "/"}},
		`Config.Processes.System: "/system.slice/sshd.service" is no cgroup`: {Tree: tree, Driver: cgroups.Systemd, Processes: cm.ProcessCgroups{System: "/system.slice/sshd.service"}},
		"bad cgroup name": {Tree: tree, Processes: cm.ProcessCgroups{Agent: "/a_b"}},
	} {
		_, err := cm.New(cfg)
		assert.ErrorContains(t, err, wantErr)
	}
	// Only systemd puts processes into services.
	m, err := cm.New(cm.Config{Tree: tree, Driver: cgroups.Systemd, Processes: cm.ProcessCgroups{Agent: "/system.slice/agent.service"}})
	require.NoError(t, err)
	assert.ErrorContains(t, m.Sync(t.Context()), "this process is not in /system.slice/agent.service, where only systemd could put it")
}
