package logind_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/shutdown/logind"
)

// A real logind, whose default delay is five seconds, waits for the node's pods when
// an operator stops the machine, and then continues: its poweroff.target waits for
// this test, and for nothing else.
func TestSystemdStopsTheMachineOnceThePodsHaveEnded(t *testing.T) { // sh-4, sh-10
	lab.NeedSystemd(t)
	bus, err := dbus.ConnectSystemBus()
	require.NoError(t, err)
	defer bus.Close()
	login := bus.Object("org.freedesktop.login1", "/org/freedesktop/login1")
	jobs := func() string {
		out, err := exec.Command("systemctl", "list-jobs", "--no-legend", "--plain").CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	const need = 5 * time.Minute
	trigger, err := logind.New(logind.Config{ReloadTimeout: patience, Logger: logger})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "pod")
	dying, die := make(chan struct{}), make(chan struct{})
	node, err := shutdown.New(shutdown.Config{
		Policy:   shutdown.Policy{Groups: []shutdown.Group{{Priority: 0, Period: need}}},
		Triggers: []shutdown.Trigger{trigger}, Logger: logger,
		Pods: onePod{func() error {
			close(dying)
			<-die
			return os.WriteFile(file, nil, 0o600)
		}},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, node.Run(ctx)) })
	t.Cleanup(func() { stop(); wg.Wait() })

	// A lock exists, and logind's delay is as long as required.
	type inhibitor struct {
		What, Who, Why, Mode string
		UID, PID             uint32
	}
	ours := func() bool {
		var all []inhibitor
		require.NoError(t, login.Call(manager+".ListInhibitors", 0).Store(&all))
		return slices.Contains(all, inhibitor{"shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay", 0, uint32(os.Getpid())})
	}
	require.Eventually(t, ours, patience, 50*time.Millisecond)
	delay, err := login.GetProperty(manager + ".InhibitDelayMaxUSec")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, delay.Value(), uint64(need/time.Microsecond))
	require.NoError(t, node.Err())
	require.NotContains(t, jobs(), "poweroff.target")

	// An operator stops the machine, which waits.
	require.NoError(t, login.Call(manager+".PowerOff", 0, false).Err)
	select {
	case <-dying:
	case <-time.After(patience):
		t.Fatal("the node was not notified")
	}
	require.ErrorIs(t, node.Err(), shutdown.ErrShuttingDown)
	stopping, err := login.GetProperty(manager + ".PreparingForShutdown")
	require.NoError(t, err)
	assert.Equal(t, true, stopping.Value())
	assert.True(t, ours())
	assert.NotContains(t, jobs(), "poweroff.target", "a pod runs")

	// The pod ends, and the machine stops.
	close(die)
	var left string
	require.Eventually(t, func() bool {
		left = jobs()
		return strings.Contains(left, "poweroff.target")
	}, patience, 50*time.Millisecond)
	assert.FileExists(t, file)
	assert.False(t, ours(), left)
}

// onePod is a node with one pod, which kill terminates.
type onePod struct{ kill func() error }

func (onePod) Running() []*v1.Pod {
	return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}}
}

func (p onePod) Kill(context.Context, shutdown.Kill) error { return p.kill() }

func (onePod) AwaitCleaned(context.Context, *v1.Pod) error { return nil }
