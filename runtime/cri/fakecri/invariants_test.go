package fakecri_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// next are the permitted transitions of each state.
var next = map[fakecri.State][]fakecri.State{
	fakecri.Absent:   {fakecri.Ready, fakecri.Created},
	fakecri.Ready:    {fakecri.NotReady},
	fakecri.NotReady: {fakecri.Absent},
	fakecri.Created:  {fakecri.Running, fakecri.Exited, fakecri.Absent},
	fakecri.Running:  {fakecri.Exited},
	fakecri.Exited:   {fakecri.Absent},
}

// A lawyer checks the changes of a runtime.
type lawyer struct {
	t       testing.TB
	state   map[string]fakecri.State
	running map[string]string // by pod, container and attempt, which is a name
}

func (l *lawyer) observe(c fakecri.Change) {
	assert.Equal(l.t, l.state[c.ID], c.From, "%s of pod %s: changes follow from each other", c.Container, c.Pod)
	assert.Contains(l.t, next[c.From], c.To, "%s of pod %s", c.Container, c.Pod)
	l.state[c.ID] = c.To
	name := fmt.Sprintf("%s/%s/%d", c.Pod, c.Container, c.Attempt)
	if c.From == fakecri.Absent {
		assert.Empty(l.t, l.running[name], "a name is used once")
		l.running[name] = c.ID
	}
	if c.To == fakecri.Absent {
		delete(l.running, name)
	}
}

// For random calls and faults, the transitions of states are valid, names are unique,
// and everything can be removed at the end.
func TestInvariantsHoldForRandomCalls(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomCalls(t, seed) })
		})
	}
}

func randomCalls(t *testing.T, seed uint64) {
	invariant := &lawyer{t, map[string]fakecri.State{}, map[string]string{}}
	end := time.Now().Add(10 * time.Minute)
	r := newRuntime(t, fakecri.Config{
		Observe: invariant.observe,
		Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
			"slow": {StartDelay: time.Second, StopDelay: 3 * time.Second},
			"deaf": {IgnoreTERM: true},
			"job":  {Exit: &fake.Exit{After: 5 * time.Second, Code: 1}},
			"sick": {Fail: &fake.Failure{Reason: "StartError", Message: "no such file"}},
		}},
		Faults: fake.Until(end, fake.Random(seed, 0.2,
			fake.Fault{Err: errBroken}, fake.Fault{Lost: true}, fake.Fault{Hang: true}, fake.Fault{Lost: true, Hang: true},
			fake.Fault{Delay: 2 * time.Second}, fake.Fault{Stale: 10 * time.Second},
		)),
	})
	var wg sync.WaitGroup
	for i := range uint64(6) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, i))
			for time.Now().Before(end) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(10))*time.Second)
				randomCall(ctx, r, rng)
				cancel()
				time.Sleep(time.Duration(1+rng.IntN(2000)) * time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 99))
		for time.Now().Before(end) {
			time.Sleep(time.Duration(10+rng.IntN(60)) * time.Second)
			if rng.IntN(3) == 0 {
				r.Reboot()
				continue
			}
			r.Down()
			time.Sleep(time.Duration(1+rng.IntN(10)) * time.Second)
			r.Up()
		}
	})
	wg.Wait()
	sandboxes, err := r.ListPodSandbox(t.Context(), nil)
	require.NoError(t, err)
	for _, s := range sandboxes {
		require.NoError(t, r.RemovePodSandbox(t.Context(), s.Id))
	}
	containers, err := r.ListContainers(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, containers)
	assert.Empty(t, invariant.running)
}

// randomCall makes one random call about one of a few pods and ignores the response.
func randomCall(ctx context.Context, r *fakecri.Runtime, rng *rand.Rand) {
	uid := fmt.Sprint(rng.IntN(3))
	pod := podConfig(uid)
	name := []string{"web", "slow", "deaf", "job", "sick"}[rng.IntN(5)]
	sandbox, container := "", ""
	if list := r.Sandboxes(uid); len(list) > 0 {
		sandbox = list[rng.IntN(len(list))].ID
	}
	if list := r.Containers(uid); len(list) > 0 {
		container = list[rng.IntN(len(list))].ID
	}
	switch rng.IntN(14) {
	case 0, 1:
		pod.Metadata.Attempt = rng.Uint32N(2)
		_, _ = r.RunPodSandbox(ctx, pod, "")
	case 2, 3, 4:
		cfg := containerConfig(uid, name)
		cfg.Metadata.Attempt = rng.Uint32N(2)
		_, _ = r.PullImage(ctx, cfg.Image, nil, pod)
		_, _ = r.CreateContainer(ctx, sandbox, cfg, pod)
	case 5, 6, 7:
		_ = r.StartContainer(ctx, container)
	case 8:
		_ = r.StopContainer(ctx, container, rng.Int64N(5))
	case 9:
		_ = r.RemoveContainer(ctx, container)
	case 10:
		_ = r.StopPodSandbox(ctx, sandbox)
	case 11:
		_ = r.RemovePodSandbox(ctx, sandbox)
	case 12:
		_, _ = r.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: pod.Labels})
		_ = r.KillSandbox(uid)
	case 13:
		_ = r.Exit(uid, name, 1)
	}
}
