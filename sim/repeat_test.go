package sim_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/status"
)

// A history is a sink that keeps each status with its time.
type history struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (h *history) add(pod *v1.Pod, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf("%v %s %s", time.Since(h.began), pod.Name, text))
}

func (h *history) UpdatePodStatus(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
	h.add(pod, status.Summary(&s))
	return nil
}

func (h *history) DeletePod(_ context.Context, pod *v1.Pod) error {
	h.add(pod, "deleted")
	return nil
}

// simulate runs 40 pods for 20 minutes, a third of which crash, and evicts the pod
// with the most restarts every minute. It returns all statuses, and the evictions.
func simulate(t *testing.T, seed *uint64) (lines []string, evicted int) {
	synctest.Test(t, func(t *testing.T) {
		rt := &runtimetest.Runtime{Backoff: 10 * time.Second}
		for i := range 5 {
			rt.Behave(fmt.Sprintf("crash-%d", i), fake.Behavior{
				Exit: &fake.Exit{After: time.Duration(i+1) * 7 * time.Second, Code: 1},
			})
		}
		h := &history{began: time.Now()}
		n := startNode(t, sim.NodeConfig{Runtime: rt, Sink: h, Seed: seed})
		for i := range 40 {
			image := "web"
			if i%3 == 0 {
				image = fmt.Sprintf("crash-%d", i%5)
			}
			require.NoError(t, n.Add(pod(fmt.Sprintf("pod-%02d", i), image)))
		}
		for minute := range 20 {
			time.Sleep(time.Minute)
			synctest.Wait()
			var worst *v1.Pod
			restarts := int32(-1)
			for _, p := range n.Pods() {
				if s := p.Status; s.Phase == v1.PodRunning && len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Running != nil &&
					s.ContainerStatuses[0].RestartCount > restarts {
					worst, restarts = p, s.ContainerStatuses[0].RestartCount
				}
			}
			if worst == nil || restarts < 2 {
				continue
			}
			<-n.Evict(worst.UID, podworker.KillOptions{Termination: runtime.Termination{Failed: true, Reason: "Evicted"}})
			evicted++
			require.NoError(t, n.Add(pod(fmt.Sprintf("next-%02d", minute), worst.Spec.Containers[0].Image)))
		}
		lines = h.lines
	})
	return lines, evicted
}

func TestASeedRepeatsANode(t *testing.T) {
	var first []string
	hashes := map[string]int{}
	for range 6 {
		lines, evicted := simulate(t, new(uint64(7)))
		require.Positive(t, evicted)
		if first == nil {
			first = lines
		}
		for i := range min(len(first), len(lines)) {
			require.Equal(t, first[i], lines[i], "line %d", i)
		}
		hashes[fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))]++
	}
	assert.Len(t, hashes, 1)

	other, _ := simulate(t, new(uint64(8)))
	assert.NotEqual(t, first, other, "another seed is another run")
}
