package kubelet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// The agent reports that the runtime is down when it has not responded for this long
// (podworker.HealthConfig); it checks every 5 s.
const runtimeThreshold = 30 * time.Second

// hang is the duration of the runtime's hang.
const hang = time.Minute

// A runtime that dies and returns, or hangs, is reported by /healthz; pods are not
// affected.
func TestIntegrationContainerdDiesAndHangs(t *testing.T) {
	t.Parallel()
	w := onContainerd(t)
	for name, manifest := range steady {
		w.put(name, manifest)
	}
	w.put("crash", manifest("crash", containers(container("main", "sleep 2; exit 3"), container("neighbour", untilTerm))))
	w.put("leaves", manifest("leaves", containers(container("main", untilTerm))))
	w.start()
	var before map[string]string
	w.until("the steady pods run", func() error {
		if before = lives(w.pods()); len(before) != 8 || !runs(w.pods()["leaves"]) {
			return fmt.Errorf("%v", before)
		}
		return nil
	})
	w.untilHealthy()
	watch := w.watch()
	mains := w.mains(before)
	leaves := w.pods()["leaves"]

	w.daemon.Kill()
	begun := time.Now()
	w.put("comes", manifest("comes", containers(container("main", untilTerm))))
	w.take("leaves")
	w.untilSick(begun)
	w.requireLives(before, mains)
	w.daemon.Start()
	w.untilHealthy()
	w.until("the changes made meanwhile are applied", func() error {
		if comes := w.pods()["comes"]; !runs(comes) {
			return fmt.Errorf("comes is %s", comes.Status.Phase)
		}
		return nil
	})
	w.untilGone(leaves)
	w.requireLives(before, mains)

	w.daemon.Pause()
	begun = time.Now()
	w.put("late", manifest("late", containers(container("main", untilTerm))))
	w.untilSick(begun)
	for time.Since(begun) < hang {
		ok, health := w.healthz() // it answers, though the runtime does not
		require.False(t, ok, health)
		w.requireLives(before, mains)
		time.Sleep(time.Second)
	}
	w.daemon.Resume()
	w.untilHealthy()
	w.until("the changes made meanwhile are applied", func() error {
		if late := w.pods()["late"]; !runs(late) {
			return fmt.Errorf("late is %s", late.Status.Phase)
		}
		return nil
	})
	w.requireLives(before, mains)
	w.countsAreTrue()
	looks, found := watch()
	t.Logf("checked %d times", looks)
	require.Empty(t, found)
}

// untilSick waits until /healthz names the runtime, within the documented time.
func (w *world) untilSick(since time.Time) {
	w.t.Helper()
	w.until("/healthz names the runtime", func() error {
		if ok, health := w.healthz(); ok || !strings.Contains(health, "[-] runtime: container runtime is down") {
			return errors.New(health)
		}
		return nil
	})
	took := time.Since(since)
	w.t.Logf("/healthz reports the runtime as down after %v", took.Round(time.Second))
	lab.Below(w.t, "delay of /healthz", took, runtimeThreshold+45*time.Second)
}

func (w *world) untilHealthy() {
	w.t.Helper()
	w.until("the agent is healthy", func() error {
		if ok, health := w.healthz(); !ok {
			return errors.New(health)
		}
		return nil
	})
}

// mains returns the first processes of the running containers.
func (w *world) mains(lives map[string]string) map[string]proc {
	w.t.Helper()
	all := map[string]proc{}
	for key := range lives {
		if p, ok := w.main(key); ok {
			all[key] = p
		}
	}
	require.Len(w.t, all, len(lives)-1, "all but an init container that is done")
	return all
}

// requireLives checks that the containers are the same, for the agent and on
// the machine.
func (w *world) requireLives(before map[string]string, mains map[string]proc) {
	w.t.Helper()
	require.Equal(w.t, before, lives(w.pods()))
	for key, p := range mains {
		require.True(w.t, p.alive(), "%s has ended", key)
	}
}
