package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// An agent that is killed at any moment, twenty times, and restarted, does not disturb
// running containers and misses no exit.

func TestAnAgentIsKilledOverProcesses(t *testing.T) {
	t.Parallel()
	agentIsKilled(t, onProcesses(t))
}

func TestIntegrationAnAgentIsKilledOverContainerd(t *testing.T) {
	t.Parallel()
	agentIsKilled(t, onContainerd(t))
}

const kills = 20

// quits is a pod that exits with code when its container gets SIGUSR1.
func quits(name string, code int, spec ...string) string {
	return manifest(name, append(spec, containers(container("main", fmt.Sprintf("trap 'exit %d' USR1; trap 'exit 0' TERM; sleep 3600 & wait", code))))...)
}

// steady are the pods that run throughout the test.
var steady = map[string]string{
	"steady-one":     manifest("steady-one", containers(container("main", untilTerm))),
	"steady-two":     manifest("steady-two", containers(container("a", untilTerm), container("b", untilTerm))),
	"steady-sidecar": manifest("steady-sidecar", inits(container("helper", untilTerm, sidecar), container("init", "exit 0")), containers(container("main", untilTerm))),
	"steady-host":    manifest("steady-host", "hostNetwork: true", never, containers(container("main", untilTerm))),
	"steady-deaf":    manifest("steady-deaf", "terminationGracePeriodSeconds: 1", containers(container("main", stubborn))),
}

func agentIsKilled(t *testing.T, w *world) {
	random := seedrun.Rand(t)
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }

	for name, manifest := range steady {
		w.put(name, manifest)
	}
	w.put("crash", manifest("crash", containers(container("main", "sleep 0.5; exit 3"), container("neighbour", untilTerm))))
	w.put("again", quits("again", 51))
	for i := range 4 {
		w.put(fmt.Sprintf("quits-%d", i), quits(fmt.Sprintf("quits-%d", i), 40+i, never))
	}
	w.start()
	var before map[string]string
	w.until("the steady pods run", func() error {
		pods := w.pods()
		before = lives(pods)
		if len(before) != 8 || !runs(pods["again"]) || !runs(pods["quits-3"]) || !runs(pods["quits-2"]) || !runs(pods["quits-1"]) || !runs(pods["quits-0"]) {
			return fmt.Errorf("%d containers run: %v", len(before), before)
		}
		return nil
	})
	watch := w.watch()
	counts := map[string]int32{}
	version := 0

	for round := range kills {
		// Something is always being started, stopped, replaced or restarted.
		w.put(fmt.Sprintf("new-%d", round), manifest(fmt.Sprintf("new-%d", round), inits(container("init", "sleep 0.3")), containers(
			container("main", "trap 'sleep 0.5; exit 0' TERM; sleep 3600 & wait"), container("job", "sleep 0.7; exit 1"))))
		if round >= 2 {
			w.take(fmt.Sprintf("new-%d", round-2))
		}
		if round%3 == 0 {
			version++
			w.put("changes", manifest("changes", containers(container("main", fmt.Sprintf("echo %d; trap 'sleep 0.4; exit 0' TERM; sleep 3600 & wait", version)))))
		}
		time.Sleep(upTo(1500 * time.Millisecond))
		w.kill()

		// Containers that exit while the agent is dead.
		var ended string
		var from, to time.Time
		if i := round / 4; round%4 == 1 && i < 4 {
			ended = fmt.Sprintf("quits-%d", i)
			from, to = w.quit(ended)
		} else if round == 7 {
			ended = "again"
			from, to = w.quit(ended)
		}
		time.Sleep(upTo(700 * time.Millisecond))
		w.start()

		w.until("the steady pods are known again", func() error {
			now := lives(w.pods())
			for key, life := range before {
				if now[key] == "" {
					return fmt.Errorf("round %d: %s is not reported", round, key)
				}
				require.Equal(t, life, now[key], "round %d: %s was disturbed", round, key)
			}
			return nil
		})
		if ended != "" {
			w.checkExit(ended, from, to)
		}
		w.countsGrow(counts)
	}

	w.until("the pods that came and went have settled", func() error {
		pods := w.pods()
		for _, name := range []string{"changes", fmt.Sprintf("new-%d", kills-1), fmt.Sprintf("new-%d", kills-2)} {
			if s := statuses(pods[name])["main"]; s.State.Running == nil {
				return fmt.Errorf("%s is %s", name, words(s))
			}
		}
		known := map[string]bool{}
		for _, pod := range pods {
			known[string(pod.UID)] = true
		}
		for key := range w.processes() {
			if name, _, _ := strings.Cut(key, "/"); pods[name].UID == "" {
				return fmt.Errorf("%s is not desired, and it runs", key)
			}
		}
		held := w.mustList()
		for _, s := range held.sandboxes {
			if !known[s.UID] && !w.refused(held.of(s.UID)) {
				return fmt.Errorf("%s (%s) is not desired, and the runtime has %+v", s.Name, s.UID, held.of(s.UID))
			}
		}
		return nil
	})
	w.countsGrow(counts)
	w.countsAreTrue()
	w.until("the newest version runs", func() error {
		pod := w.pods()["changes"]
		path := w.logFile(pod, "main", statuses(pod)["main"].RestartCount)
		if lines := w.readLog(path); len(lines) == 0 || lines[0].text != fmt.Sprint(version) {
			return fmt.Errorf("%s has %v", path, lines)
		}
		return nil
	})
	looks, found := watch()
	t.Logf("checked %d times", looks)
	require.Empty(t, found)
	require.Greater(t, looks, kills)
	now := lives(w.pods())
	maps.DeleteFunc(now, func(key, _ string) bool { return before[key] == "" })
	require.Equal(t, before, now)
	for i := range 4 { // a second check of the same exit
		pod := w.pods()[fmt.Sprintf("quits-%d", i)]
		require.Equal(t, v1.PodFailed, pod.Status.Phase)
		require.Equal(t, fmt.Sprintf("exited %d Error", 40+i), words(statuses(pod)["main"]))
	}
	again := statuses(w.pods()["again"])["main"]
	if last := again.LastTerminationState.Terminated; last != nil && last.Reason == "StartError" {
		t.Logf("the agent was killed while containerd restarted %q: %s", "again", words(again)) // see refused
		return
	}
	require.Equal(t, "running, after exited 51 Error, 1 restarts", words(again))
}

// refused reports whether containerd refuses to remove a dead pod. When a client
// disconnects while it creates a task, containerd reports the container as exited
// (128, StartError, "context canceled") and keeps the task; from then on it refuses to
// remove the container. The task's program does not run: no process of the container
// is found. No call of the CRI solves this.
func (w *world) refused(dead listing) bool {
	refused := false
	for _, c := range dead.containers {
		if c.running {
			return false
		}
		refused = refused || w.daemon != nil && strings.Contains(w.out.String(), "cannot delete running task "+c.ID)
	}
	for _, s := range dead.sandboxes {
		if s.Ready {
			return false
		}
	}
	if refused {
		w.t.Logf("containerd refuses to remove the remains of %s", dead.sandboxes[0].Name)
	}
	return refused
}

// lives returns the properties that must not change, of each running container of the
// steady pods and of its finished init containers.
func lives(pods map[string]v1.Pod) map[string]string {
	all := map[string]string{}
	for name := range steady {
		for container, s := range statuses(pods[name]) {
			switch {
			case s.State.Running != nil:
				all[name+"/"+container] = fmt.Sprintf("%s, restarted %d times, since %v", s.ContainerID, s.RestartCount, s.State.Running.StartedAt.Time)
			case s.State.Terminated != nil:
				all[name+"/"+container] = fmt.Sprintf("%s, restarted %d times, until %v", s.ContainerID, s.RestartCount, s.State.Terminated.FinishedAt.Time)
			}
		}
	}
	return all
}

func runs(pod v1.Pod) bool { return pod.Status.Phase == v1.PodRunning }

// quit makes the container of the pod exit, and returns two times between which it
// did.
func (w *world) quit(pod string) (from, to time.Time) {
	w.t.Helper()
	main, ok := w.main(pod + "/main")
	require.True(w.t, ok, "%s does not run", pod)
	from = time.Now()
	require.NoError(w.t, w.signal(main, syscall.Signal(10))) // USR1 on Linux
	w.until(pod+" ends", func() error {
		if main.alive() {
			return fmt.Errorf("process %d lives", main.pid)
		}
		return nil
	})
	return from, time.Now()
}

// checkExit checks that an exit during the agent's downtime is reported correctly.
func (w *world) checkExit(name string, from, to time.Time) {
	w.t.Helper()
	var end *v1.ContainerStateTerminated
	w.until(name+" is known to have ended", func() error {
		s := statuses(w.pods()[name])["main"]
		if end = s.State.Terminated; end == nil {
			end = s.LastTerminationState.Terminated
		}
		if end == nil {
			return fmt.Errorf("it is %s", words(s))
		}
		return nil
	})
	var code int
	if _, err := fmt.Sscanf(name, "quits-%d", &code); err != nil {
		code = 11
	}
	require.EqualValues(w.t, 40+code, end.ExitCode)
	require.Equal(w.t, "Error", end.Reason)
	require.WithinRange(w.t, end.FinishedAt.Time, from.Truncate(time.Second), to, "%s ended at another time", name) // whole seconds
}

// countsGrow checks that no restart count is lower than it was.
func (w *world) countsGrow(counts map[string]int32) {
	w.t.Helper()
	for name, pod := range w.pods() {
		for container, s := range statuses(pod) {
			key := name + "/" + container + " of " + string(pod.UID)
			require.GreaterOrEqual(w.t, s.RestartCount, counts[key], "restarts of %s", key)
			counts[key] = s.RestartCount
		}
	}
}

// countsAreTrue checks the restart counts that the agent reports against the attempts
// that the runtime lists.
func (w *world) countsAreTrue() {
	w.t.Helper()
	w.until("restart counts are those of the runtime", func() error {
		highest := map[string]int32{}
		for _, c := range w.mustList().containers {
			highest[c.uid()+c.Name] = max(highest[c.uid()+c.Name], int32(c.Attempt))
		}
		for name, pod := range w.pods() {
			for container, s := range statuses(pod) {
				if at := highest[string(pod.UID)+container]; at != s.RestartCount {
					return fmt.Errorf("%s/%s: %d, the runtime has attempt %d", name, container, s.RestartCount, at)
				}
			}
		}
		return nil
	})
}

// watch checks continuously for duplicates, until stop is called, which returns those
// found.
func (w *world) watch() (stop func() (looks int, found []string)) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	var looks int
	var found []string
	wg.Go(func() {
		for ; ; looks++ {
			found = append(found, w.twice()...)
			if l, err := w.list(); err == nil {
				found = append(found, l.doubles()...)
			}
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	once := sync.OnceFunc(func() { close(done); wg.Wait() })
	w.t.Cleanup(once)
	return func() (int, []string) {
		once()
		slices.Sort(found)
		return looks, slices.Compact(found)
	}
}
