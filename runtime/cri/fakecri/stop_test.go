package fakecri_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestAStopWaitsForItsGrace(t *testing.T) {
	for name, c := range map[string]struct {
		does  fake.Behavior
		grace int64
		takes time.Duration
		code  int32
	}{
		"obeys TERM at once":       {fake.Behavior{}, 30, 0, 143},
		"obeys with its own code":  {fake.Behavior{StopCode: 7}, 30, 0, 7},
		"takes a while":            {fake.Behavior{StopDelay: 5 * time.Second}, 30, 5 * time.Second, 143},
		"takes too long":           {fake.Behavior{StopDelay: time.Minute}, 30, 30 * time.Second, 137},
		"ignores TERM":             {fake.Behavior{IgnoreTERM: true}, 30, 30 * time.Second, 137},
		"gets no grace":            {fake.Behavior{}, 0, 0, 137},
		"negative timeout":         {fake.Behavior{}, -5, 0, 137},
		"ends by itself meanwhile": {fake.Behavior{IgnoreTERM: true, Exit: &fake.Exit{After: 10 * time.Second, Code: 3}}, 30, 10 * time.Second, 3},
		"maximum timeout":          {fake.Behavior{StopDelay: time.Hour}, 1 << 62, time.Hour, 143},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, does(c.does), func(n *node) {
				id, _ := n.started()
				begun := time.Now()
				require.NoError(n, n.StopContainer(n.ctx, id, c.grace))
				assert.Equal(n, c.takes, time.Since(begun))
				n.exited(id, c.code, "Error", 0)
			})
		})
	}
}

func TestTheShorterOfOverlappingStopsApplies(t *testing.T) {
	on(t, does(fake.Behavior{IgnoreTERM: true}), func(n *node) {
		id, _ := n.started()
		begun := time.Now()
		long := make(chan time.Duration, 1)
		go func() {
			assert.NoError(n, n.StopContainer(n.ctx, id, 60))
			long <- time.Since(begun)
		}()
		time.Sleep(time.Second)
		require.NoError(n, n.StopContainer(n.ctx, id, 2))
		assert.Equal(n, 3*time.Second, time.Since(begun))
		assert.Equal(n, 3*time.Second, <-long)
		n.exited(id, 137, "Error", 0)
	})
}

func TestTermIsGivenOnce(t *testing.T) {
	on(t, does(fake.Behavior{StopDelay: 10 * time.Second}), func(n *node) {
		id, _ := n.started()
		begun := time.Now()
		go func() { assert.NoError(n, n.StopContainer(n.ctx, id, 60)) }()
		time.Sleep(6 * time.Second)
		require.NoError(n, n.StopContainer(n.ctx, id, 60))
		assert.Equal(n, 10*time.Second, time.Since(begun))
	})
}

// A kubelet's time-out cancels containerd's StopContainer, and then SIGKILL is not
// sent.
func TestACanceledStopKillsNothing(t *testing.T) {
	on(t, does(fake.Behavior{IgnoreTERM: true}), func(n *node) {
		id, _ := n.started()
		ctx, cancel := context.WithTimeout(n.ctx, time.Second)
		defer cancel()
		hasCode(n, codes.DeadlineExceeded, n.StopContainer(ctx, id, 2))
		time.Sleep(time.Hour)
		n.runs(id)
	})
}

func TestAStoppedSandboxHasNoRunningContainers(t *testing.T) {
	on(t, does(fake.Behavior{IgnoreTERM: true}), func(n *node) {
		id, sandbox := n.started()
		created := n.created(sandbox, "a", "new", 0)
		waiting := make(chan error, 1)
		go func() { waiting <- n.StopContainer(n.ctx, id, 60) }()
		time.Sleep(time.Second)
		require.NoError(n, n.StopPodSandbox(n.ctx, sandbox))
		require.NoError(n, <-waiting)
		n.exited(id, 137, "Error", 0)
		assert.Zero(n, n.look(created).FinishedAt)
	})
}

func TestAContainerThatHangsIsKilled(t *testing.T) {
	on(t, does(fake.Behavior{Exit: &fake.Exit{After: time.Minute}, StopDelay: 10 * time.Second}), func(n *node) {
		id, _ := n.started()
		go func() { assert.NoError(n, n.StopContainer(n.ctx, id, 3600)) }()
		time.Sleep(time.Second)
		require.NoError(n, n.Hang("a", "web"))
		time.Sleep(30 * time.Minute)
		n.runs(id)
		begun := time.Now()
		require.NoError(n, n.StopContainer(n.ctx, id, 30))
		assert.Equal(n, 30*time.Second, time.Since(begun))
		n.exited(id, 137, "Error", 0)
		assert.ErrorContains(n, n.Hang("a", "web"), "no container web of pod a runs")
	})
}
