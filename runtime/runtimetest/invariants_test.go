package runtimetest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// For random events, repeated SyncPod calls soon have nothing to do (inv-16), no
// container runs twice, and restart counts do not decrease (inv-10).
func TestInvariantsHoldAtRandom(t *testing.T) {
	rnd := seedrun.Rand(t)
	for range 200 {
		synctest.Test(t, func(t *testing.T) { randomLife(t, rnd) })
	}
}

func randomLife(t *testing.T, rnd *rand.Rand) {
	rt := new(runtimetest.Runtime)
	rt.Behave("setup", fake.Behavior{Exit: &fake.Exit{After: time.Millisecond}})
	pod := randomPod(rnd)
	counts := map[string]int32{} // of the newest instance of each container
	ids := map[string]bool{}     // of all instances so far
	for range 10 {
		// Sync until nothing is left to do; the last step has no actions.
		for round := 0; ; round++ {
			require.LessOrEqual(t, round, len(pod.Spec.InitContainers)+2, "no end of SyncPods; the pod is %+v", mustLook(t, rt, "p"))
			if len(mustSync(t, rt, pod).Actions) == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		s := mustLook(t, rt, "p")
		running := map[string]int{}
		for _, c := range s.Containers {
			if c.State == runtime.ContainerRunning {
				running[c.Name]++
				require.Equal(t, 1, running[c.Name], "%s runs twice", c.Name)
			}
		}
		for _, c := range slices.Backward(s.Containers) { // oldest first
			if ids[c.ID] {
				continue
			}
			ids[c.ID] = true
			if before, ok := counts[c.Name]; ok {
				require.Greater(t, c.RestartCount, before, "new instance of %s", c.Name)
			}
			counts[c.Name] = c.RestartCount
		}

		switch names := allNames(pod); rnd.IntN(8) {
		case 0:
			rt.Crash("p")
		case 1:
			require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{MaxPerContainer: rnd.IntN(2)}))
		case 2:
			rt.Start("p", pod.Spec.Containers[0].Name) // a twin
		case 3:
			pod = pod.DeepCopy()
			pod.Spec.Containers[0].Image += "+"
		default:
			_ = rt.Exit("p", names[rnd.IntN(len(names))], int32(rnd.IntN(2))) // if it runs
		}
	}
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "p", Pod: pod}))
	require.False(t, mustLook(t, rt, "p").Running())
}

func randomPod(rnd *rand.Rand) *v1.Pod {
	pod := newPod("p", "a", "b")
	policies := []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}
	pod.Spec.RestartPolicy = policies[rnd.IntN(len(policies))]
	for i := range rnd.IntN(4) {
		c := v1.Container{Name: fmt.Sprint("init-", i), Image: "setup"}
		if rnd.IntN(2) == 0 {
			c.Name, c.Image = fmt.Sprint("sidecar-", i), "sidecar"
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	return pod
}

func allNames(pod *v1.Pod) []string {
	var names []string
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			names = append(names, c.Name)
		}
	}
	return names
}
