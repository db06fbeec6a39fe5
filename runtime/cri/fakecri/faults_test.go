package fakecri_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

var errBroken = status.Error(codes.Internal, "broken")

// onStart returns the configuration of a runtime with a fault of StartContainer.
func onStart(f fake.Fault) fakecri.Config {
	return fakecri.Config{Faults: fake.On(fake.Always(f), "StartContainer")}
}

func TestACallFailsBeforeItDoesAnything(t *testing.T) {
	on(t, onStart(fake.Fault{Err: errBroken}), func(n *node) {
		id := n.created(n.sandbox("a"), "a", "web", 0)
		hasCode(n, codes.Internal, n.StartContainer(n.ctx, id))
		assert.Equal(n, fakecri.Created, n.Containers("a")[0].State)
	})
}

func TestACallTakesEffectAndItsAnswerIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		fault fake.Fault
		want  codes.Code
	}{
		"with an error":      {fake.Fault{Lost: true, Err: errBroken}, codes.Internal},
		"with a hang":        {fake.Fault{Lost: true, Hang: true}, codes.DeadlineExceeded},
		"with nothing named": {fake.Fault{Lost: true}, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, onStart(c.fault), func(n *node) {
				id := n.created(n.sandbox("a"), "a", "web", 0)
				ctx, cancel := context.WithTimeout(n.ctx, time.Minute)
				defer cancel()
				hasCode(n, c.want, n.StartContainer(ctx, id))
				n.runs(id)
			})
		})
	}
}

func TestACallHangsUntilItIsCanceled(t *testing.T) {
	on(t, onStart(fake.Fault{Hang: true}), func(n *node) {
		id := n.created(n.sandbox("a"), "a", "web", 0)
		ctx, cancel := context.WithTimeout(n.ctx, time.Minute)
		defer cancel()
		begun := time.Now()
		hasCode(n, codes.DeadlineExceeded, n.StartContainer(ctx, id))
		assert.Equal(n, time.Minute, time.Since(begun))
		assert.Equal(n, fakecri.Created, n.Containers("a")[0].State)
	})
}

func TestACallIsHeldUp(t *testing.T) {
	on(t, onStart(fake.Fault{Delay: 3 * time.Second}), func(n *node) {
		id := n.created(n.sandbox("a"), "a", "web", 0)
		begun := time.Now()
		require.NoError(n, n.StartContainer(n.ctx, id))
		assert.Equal(n, 3*time.Second, time.Since(begun))
		ctx, cancel := context.WithTimeout(n.ctx, time.Second)
		defer cancel()
		hasCode(n, codes.DeadlineExceeded, n.StartContainer(ctx, id))
	})
}

func TestACanceledCallDoesNothing(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		ctx, cancel := context.WithCancel(n.ctx)
		cancel()
		_, err := n.RunPodSandbox(ctx, podConfig("a"), "")
		hasCode(n, codes.Canceled, err)
		assert.Empty(n, n.Sandboxes(""))
	})
}

func TestAFaultReceivesTheObjectOfACall(t *testing.T) {
	var seen []string
	cfg := fakecri.Config{Faults: func(c fake.Call) fake.Fault {
		seen = append(seen, fmt.Sprintf("%s#%d %s/%s", c.Method, c.Number, c.Pod, c.Container))
		return fake.Fault{}
	}}
	on(t, cfg, func(n *node) {
		id, sandbox := n.started()
		n.look(id)
		n.look(id)
		require.NoError(n, n.RemovePodSandbox(n.ctx, sandbox))
		assert.Equal(n, []string{
			"RunPodSandbox#1 a/", "PullImage#1 /", "CreateContainer#1 a/web", "StartContainer#1 a/web",
			"ContainerStatus#1 a/web", "ContainerStatus#2 a/web", "RemovePodSandbox#1 a/",
		}, seen)
	})
}

// calls evaluates faults for n calls, and returns the numbers of those with a fault.
func calls(faults func(fake.Call) fake.Fault, n int, method string, pod types.UID) []int {
	var hit []int
	for i := range n {
		if f := faults(fake.Call{Method: method, Pod: pod, Number: i + 1}); f.Err != nil || f.Hang {
			hit = append(hit, i+1)
		}
	}
	return hit
}

func TestFaultsArePutTogether(t *testing.T) {
	broken := fake.Fault{Err: errors.Join(errBroken)} // of a kind that == cannot compare
	always := fake.Always(broken)
	assert.Equal(t, []int{1, 2, 3}, calls(always, 3, "A", ""))
	assert.Equal(t, []int{3, 6}, calls(fake.Every(3, broken), 8, "A", ""))
	assert.Empty(t, calls(fake.Every(0, broken), 8, "A", ""))
	assert.Equal(t, []int{1, 2}, calls(fake.Times(2, always), 8, "A", ""))
	assert.Equal(t, []int{4, 8}, calls(fake.Times(2, fake.Every(4, broken)), 20, "A", ""))
	assert.Empty(t, calls(fake.On(always, "B", "C"), 8, "A", ""))
	assert.Len(t, calls(fake.On(always, "B", "C"), 8, "C", ""), 8)
	ofPod := fake.If(func(c fake.Call) bool { return c.Pod == "p" }, always)
	assert.Empty(t, calls(ofPod, 8, "A", "q"))
	assert.Len(t, calls(ofPod, 8, "A", "p"), 8)
	first := fake.First(fake.Every(2, broken), fake.Every(3, fake.Fault{Hang: true}))
	assert.Equal(t, []int{2, 3, 4, 6}, calls(first, 6, "A", ""))
	assert.True(t, first(fake.Call{Number: 3}).Hang)
	assert.False(t, first(fake.Call{Number: 6}).Hang)
	assert.Empty(t, calls(fake.Until(time.Now().Add(-time.Hour), always), 8, "A", ""))
	assert.Len(t, calls(fake.Until(time.Now().Add(time.Hour), always), 8, "A", ""), 8)
}

func TestRandomFaultsComeFromTheirSeed(t *testing.T) {
	broken, hung := fake.Fault{Err: errBroken}, fake.Fault{Hang: true}
	random := func(seed uint64) func(fake.Call) fake.Fault {
		return fake.Random(seed, 0.2, broken, hung)
	}
	a := calls(random(1), 10_000, "A", "p")
	assert.InDelta(t, 2000, len(a), 200)
	assert.Equal(t, a, calls(random(1), 10_000, "A", "p"))
	assert.NotEqual(t, a, calls(random(2), 10_000, "A", "p"))
	assert.NotEqual(t, a, calls(random(1), 10_000, "A", "q"))
	assert.NotEqual(t, a, calls(random(1), 10_000, "B", "p"))

	mixed := random(1) // with others between them
	var b []int
	hangs := 0
	for i := range 10_000 {
		mixed(fake.Call{Method: "A", Pod: "q"})
		f := mixed(fake.Call{Method: "A", Pod: "p"})
		if f.Err != nil || f.Hang {
			b = append(b, i+1)
		}
		if f.Hang {
			hangs++
		}
	}
	assert.Equal(t, a, b)
	assert.InDelta(t, len(a)/2, hangs, 150)

	assert.Empty(t, calls(fake.Random(1, 0, broken), 1000, "A", ""))
	assert.Len(t, calls(fake.Random(1, 1, broken), 1000, "A", ""), 1000)
	assert.Empty(t, calls(fake.Random(1, 1), 1000, "A", ""))
}

func TestACallHasTheIDOfItsObject(t *testing.T) {
	var ids []string
	cfg := fakecri.Config{Faults: func(c fake.Call) fake.Fault {
		if c.Method == "StopContainer" || c.Method == "StopPodSandbox" || c.Method == "ListContainers" {
			ids = append(ids, c.ID)
		}
		return fake.Fault{}
	}}
	on(t, cfg, func(n *node) {
		id, sandbox := n.started()
		require.NoError(n, n.StopContainer(n.ctx, id, 1))
		require.NoError(n, n.StopContainer(n.ctx, "absent", 1))
		require.NoError(n, n.StopPodSandbox(n.ctx, sandbox))
		_, err := n.ListContainers(n.ctx, nil)
		require.NoError(n, err)
		assert.Equal(n, []string{id, "absent", sandbox, ""}, ids)
	})
}
