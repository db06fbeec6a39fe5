package kubelet

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// One scenario for every runtime: pods of many shapes reach their expected states,
// leave the expected files, and terminate as expected.

func TestPodScenarioOnProcesses(t *testing.T) {
	t.Parallel()
	lifecycle(t, onProcesses(t), processShapes)
}

func TestIntegrationPodScenarioOnContainerd(t *testing.T) {
	t.Parallel()
	lifecycle(t, onContainerd(t), containerdShapes)
}

func lifecycle(t *testing.T, w *world, more []shape) {
	shapes := slices.Concat(commonShapes, more)
	w.put("golden", goldenManifest)
	for _, s := range shapes {
		w.put(s.name, s.manifest)
	}
	w.start("--v=4")
	begun := time.Now()
	crash := &crashes{world: w, logs: map[int32]*os.File{}}
	// Not all at once: a crash loop is not at the same place again later.
	waiting := slices.Clone(shapes)
	w.until("all pods reach their expected states", func() error {
		var wrong []error
		pods := w.pods()
		crash.open(pods["crash"])
		waiting = slices.DeleteFunc(waiting, func(s shape) bool {
			what := s.match(pods[s.name])
			if what != "" {
				wrong = append(wrong, errors.New(what))
			}
			return what == ""
		})
		return errors.Join(wrong...)
	})
	t.Logf("%d pods have settled after %v", len(shapes)+1, time.Since(begun).Round(time.Second))
	pods := w.pods()
	require.Empty(t, w.mustList().doubles())

	crashed := crash.checkFirstRestart()
	w.checkOrder(pods)
	w.checkOutput(pods)
	w.checkListing(pods["golden"])
	w.checkRemoval(pods)
	w.checkReplacement(pods["slow"])
	crash.checkBackoff(crashed)

	for _, s := range shapes { // pods at rest have not changed
		if s.name != "polite" && s.name != "stubborn" && s.name != "crash" {
			require.Empty(t, s.match(w.pods()[s.name]))
		}
	}
	ok, health := w.healthz()
	require.True(t, ok, health)

	require.NoError(t, w.interrupt())
	for _, c := range w.mustList().containers {
		require.False(t, c.running, "%s runs after Ctrl-C", c)
	}
	for _, s := range w.mustList().sandboxes {
		require.False(t, s.Ready, "%s is ready after Ctrl-C", s.Name)
	}
	require.Empty(t, w.processes())
}

// checkOrder checks that init containers ran one after the other.
func (w *world) checkOrder(pods map[string]v1.Pod) {
	w.t.Helper()
	var last time.Time
	for _, name := range []string{"first", "second", "main"} {
		lines := w.awaitLog(w.logFile(pods["inits"], name, 0))
		require.True(w.t, lines[0].at.After(last), "%s began before the one before it had ended", name)
		last = lines[len(lines)-1].at
	}
}

// checkOutput checks the output of containers, and its location.
func (w *world) checkOutput(pods map[string]v1.Pod) {
	w.t.Helper()
	t, env := w.t, pods["env"]
	ip, err := netip.ParseAddr(env.Status.PodIP)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("env-node default %s %s back", env.UID, ip), w.awaitLog(w.logFile(env, "main", 0))[0].text)

	require.FileExists(t, filepath.Join(w.logs(), "other_elsewhere-node_"+string(pods["elsewhere"].UID), "main", "0.log"))

	network, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.Equal(t, network, w.awaitLog(w.logFile(pods["host"], "main", 0))[0].text)

	var long, printed strings.Builder
	n := 0
	for _, l := range w.readLog(w.logFile(pods["talker"], "main", 0)) {
		switch {
		case l.stream == "stderr":
			printed.WriteString(l.text)
		case n < 3000:
			require.Equal(t, fmt.Sprintf("line %d", n), l.text)
			n++
		default:
			long.WriteString(l.text)
		}
	}
	require.Equal(t, 3000, n)
	require.Equal(t, strings.Repeat("x", talkLong), long.String())
	require.Equal(t, "oops", printed.String())

	// The back-off hides why a container could not be started, the agent's
	// output does not.
	require.Regexp(t, `no-command-node.*(CreateContainerError|RunContainerError)`, w.out.String())
}

// checkRemoval removes two manifests, of a pod that handles SIGTERM and of one that
// ignores it.
func (w *world) checkRemoval(pods map[string]v1.Pod) {
	w.t.Helper()
	t := w.t
	log, err := os.Open(w.logFile(pods["polite"], "main", 0)) // outlives its directory
	require.NoError(t, err)
	defer log.Close()

	begun := time.Now()
	w.take("polite")
	w.take("stubborn")
	w.until("polite exits on SIGTERM", func() error {
		if left := w.processes()["polite/main"]; len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
	lab.Below(t, "termination of polite", time.Since(begun), 50*time.Second)
	_, runs := w.main("stubborn/main")
	for ; runs; _, runs = w.main("stubborn/main") {
		require.Less(t, time.Since(begun), patience, "stubborn is not killed")
		time.Sleep(20 * time.Millisecond)
	}
	require.GreaterOrEqual(t, time.Since(begun), 4*time.Second, "stubborn was killed before its grace had run out")

	for _, name := range []string{"polite", "stubborn"} {
		w.untilGone(pods[name])
	}
	printed, err := io.ReadAll(log)
	require.NoError(t, err)
	lines := parseLog(t, printed)
	require.Equal(t, "caught TERM", lines[len(lines)-1].text)
}

// untilGone waits until nothing of the pod is left anywhere.
func (w *world) untilGone(pod v1.Pod) {
	w.t.Helper()
	w.until(pod.Name+" leaves nothing", func() error {
		if left := w.mustList().of(string(pod.UID)); len(left.containers)+len(left.sandboxes) > 0 {
			return fmt.Errorf("the runtime has %+v", left)
		}
		for _, dir := range []string{w.podLogs(pod), filepath.Join(w.dir, "root", "pods", string(pod.UID))} {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				return fmt.Errorf("%s exists (%v)", dir, err)
			}
		}
		return nil
	})
}

// checkReplacement changes a manifest: another pod of that name, which begins
// when the old one has ended.
func (w *world) checkReplacement(old v1.Pod) {
	w.t.Helper()
	t := w.t
	log, err := os.Open(w.logFile(old, "main", 0))
	require.NoError(t, err)
	defer log.Close()
	w.put("slow", slowManifest("second"))
	var now v1.Pod
	w.until("the changed pod runs", func() error {
		if doubles := w.mustList().doubles(); len(doubles) > 0 {
			t.Fatal(doubles)
		}
		now = w.pods()["slow"]
		if now.UID == old.UID || words(statuses(now)["main"]) != "running" {
			return errors.New(words(statuses(now)["main"]))
		}
		return nil
	})
	w.untilGone(old)
	data, err := io.ReadAll(log)
	require.NoError(t, err)
	before, after := parseLog(t, data), w.awaitLog(w.logFile(now, "main", 0))
	require.Equal(t, "first begins", before[0].text)
	require.Equal(t, "ends", before[len(before)-1].text)
	require.Equal(t, "second begins", after[0].text)
	require.True(t, after[0].at.After(before[len(before)-1].at), "the new pod began at %v, the old one ended at %v", after[0].at, before[len(before)-1].at)
}

// crashes are the instances of the container that crashes.
type crashes struct {
	*world
	logs map[int32]*os.File // outlive their removal, which is at a restart
}

// open opens the logs that exist now.
func (c *crashes) open(pod v1.Pod) {
	for n := range statuses(pod)["main"].RestartCount + 1 {
		if c.logs[n] != nil {
			continue
		}
		if log, err := os.Open(c.logFile(pod, "main", n)); err == nil {
			c.t.Cleanup(func() { _ = log.Close() })
			c.logs[n] = log
		}
	}
}

// lived returns when the n-th instance began and ended, by its log.
func (c *crashes) lived(n int32) (began, ended time.Time) {
	c.t.Helper()
	var lines []line
	c.until(fmt.Sprintf("crash has been restarted %d times, and ended", n), func() error {
		pod := c.pods()["crash"]
		c.open(pod)
		if s := statuses(pod)["main"]; s.RestartCount < n {
			return errors.New(words(s))
		}
		printed, err := io.ReadAll(io.NewSectionReader(c.logs[n], 0, 1<<20))
		if err != nil {
			return err
		}
		if lines = parseLog(c.t, printed); len(lines) < 2 {
			return fmt.Errorf("its log has %d lines", len(lines))
		}
		return nil
	})
	return lines[0].at, lines[1].at
}

// checkFirstRestart checks that a container which crashes for the first time
// is started again at once, and returns when it crashed for the second time.
func (c *crashes) checkFirstRestart() time.Time {
	c.t.Helper()
	_, ended := c.lived(0)
	again, ended2 := c.lived(1)
	c.t.Logf("restart 1 came after %v", again.Sub(ended))
	lab.Below(c.t, "the first restart", again.Sub(ended), 10*time.Second)
	return ended2
}

// checkBackoff checks that the next restarts were 10 s and 20 s after the exit.
func (c *crashes) checkBackoff(ended time.Time) {
	c.t.Helper()
	t, w := c.t, c.world
	for n, wait := int32(2), 10*time.Second; n <= 3; n, wait = n+1, 2*wait {
		began, end := c.lived(n)
		t.Logf("restart %d came after %v", n, began.Sub(ended))
		require.GreaterOrEqual(t, began.Sub(ended), wait)
		lab.Below(t, "the back-off", began.Sub(ended), 2*wait)
		ended = end
	}
	var s v1.ContainerStatus
	w.until("the agent reports the exit", func() error {
		if s = statuses(w.pods()["crash"])["main"]; s.State.Waiting == nil {
			return errors.New(words(s))
		}
		return nil
	})
	require.Equal(t, "waiting CrashLoopBackOff, after exited 3 Error, 3 restarts", words(s))
	highest := uint32(0)
	for _, c := range w.mustList().of(string(w.pods()["crash"].UID)).containers {
		if c.Name == "main" {
			highest = max(highest, c.Attempt)
		}
	}
	require.EqualValues(t, 3, highest)
	require.Equal(t, "running", words(statuses(w.pods()["crash"])["neighbour"]))
}
