package fakecri_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestEveryChangeIsObserved(t *testing.T) {
	var begun time.Time
	var seen []string
	cfg := does(fake.Behavior{Exit: &fake.Exit{After: 10 * time.Second, Code: 137, Reason: fake.OOMKilled}})
	cfg.Observe = func(c fakecri.Change) {
		end := ""
		if c.To == fakecri.Exited {
			end = fmt.Sprintf(" (%d %s)", c.ExitCode, c.Reason)
		}
		seen = append(seen, fmt.Sprintf("%v %s/%s.%d: %v, %v%s", c.At.Sub(begun), c.Pod, c.Container, c.Attempt, c.From, c.To, end))
	}
	on(t, cfg, func(n *node) {
		begun = time.Now()
		sandbox := n.sandbox("a")
		id := n.created(sandbox, "a", "web", 2)
		require.NoError(n, n.StartContainer(n.ctx, id))
		time.Sleep(time.Minute)
		require.NoError(n, n.RemovePodSandbox(n.ctx, sandbox))
		assert.Equal(n, []string{
			"0s a/.0: absent, ready",
			"0s a/web.2: absent, created",
			"0s a/web.2: created, running",
			"10s a/web.2: running, exited (137 OOMKilled)",
			"1m0s a/.0: ready, not ready",
			"1m0s a/web.2: exited, absent",
			"1m0s a/.0: not ready, absent",
		}, seen)
	})
}

func TestAChangeHasThePodOfAContainer(t *testing.T) {
	var last fakecri.Change
	on(t, fakecri.Config{Observe: func(c fakecri.Change) { last = c }}, func(n *node) {
		id, sandbox := n.started()
		assert.Equal(n, fakecri.Change{
			At: time.Now(), Pod: "a", Container: "web", ID: id, Sandbox: sandbox, Image: "registry.example/web:1",
			From: fakecri.Created, To: fakecri.Running,
		}, last)
	})
}

func TestAnObserverMayCallTheRuntime(t *testing.T) {
	var r *fakecri.Runtime
	var seen []fakecri.State
	cfg := fakecri.Config{Observe: func(c fakecri.Change) {
		if c.Container == "" {
			return
		}
		seen = append(seen, c.To)
		if c.To == fakecri.Running {
			_ = r.Exit(c.Pod, c.Container, 1)
		}
	}}
	on(t, cfg, func(n *node) {
		r = n.Runtime
		id, _ := n.started()
		n.exited(id, 1, "Error", 0)
		assert.Equal(n, []fakecri.State{fakecri.Created, fakecri.Running, fakecri.Exited}, seen)
	})
}

// The changes of an object form a chain, whichever calls cause them.
func TestChangesAreReportedInOrder(t *testing.T) {
	state := map[string]fakecri.State{}
	count := 0
	cfg := does(fake.Behavior{Exit: &fake.Exit{After: time.Second}})
	cfg.Observe = func(c fakecri.Change) {
		if state[c.ID] != c.From {
			t.Errorf("%s was %v, but a change from %v to %v is reported", c.ID, state[c.ID], c.From, c.To)
		}
		state[c.ID] = c.To
		count++
	}
	on(t, cfg, func(n *node) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				uid := fmt.Sprint(i)
				sandbox := n.sandbox(uid)
				for attempt := range uint32(10) {
					id := n.created(sandbox, uid, "web", attempt)
					assert.NoError(n, n.StartContainer(n.ctx, id))
					time.Sleep(time.Duration(500+100*i) * time.Millisecond)
					assert.NoError(n, n.StopContainer(n.ctx, id, 1))
				}
				assert.NoError(n, n.RemovePodSandbox(n.ctx, sandbox))
			})
		}
		wg.Wait()
		assert.Equal(n, 20*(3+10*4), count)
	})
}
