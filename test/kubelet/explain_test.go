package kubelet

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
)

func TestThePageExplainsAPodsState(t *testing.T) { // adm-5
	t.Parallel()
	a := newAgent(t, "process")
	a.write("web.yaml", manifest("web", containers(container("main", untilTerm))))
	a.write("gpu.yaml", manifest("gpu", "nodeSelector: {gpu: present}", containers(container("main", untilTerm))))
	a.start()
	a.eventually("one pod runs, the other is rejected", func() bool {
		pods := a.pods()
		return pods["web"].Status.Phase == v1.PodRunning && pods["gpu"].Status.Phase == v1.PodFailed
	})
	assert.Equal(t, "NodeAffinity", a.pods()["gpu"].Status.Reason)
	assert.True(t, strings.HasPrefix(a.pods()["gpu"].Status.Message, "Pod was rejected: Predicate NodeAffinity failed"))

	var found []podworker.Snapshot
	a.eventually("both are at rest", func() bool {
		_, body, err := a.get("/explain?output=json")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, &found))
		require.Len(t, found, 2)
		byName := map[string]podworker.Snapshot{}
		for _, e := range found {
			byName[e.Name] = e
		}
		web, gpu := byName["web-node"], byName["gpu-node"]
		return web.State == podworker.Syncing && web.Step == "" && web.Err == "" && gpu.State == podworker.Finished && gpu.Step == ""
	})
	_, text, err := a.get("/explain?uid=" + string(a.pods()["gpu"].UID))
	require.NoError(t, err)
	assert.Regexp(t, "\\): NodeAffinity: Pod was rejected: Predicate NodeAffinity failed.* The pod terminated .* ago\\. Termination requested .* ago \\(terminal\\)", string(text))
	code, _, err := a.get("/explain?uid=missing")
	require.NoError(t, err)
	assert.Equal(t, 404, code)
}

func TestACriticalPodPreemptsOthers(t *testing.T) { // adm-10
	t.Parallel()
	all := fmt.Sprintf("resources: {requests: {cpu: %d}}", goruntime.NumCPU())
	a := newAgent(t, "process")
	a.write("low.yaml", manifest("low", "priority: 1", containers(container("main", untilTerm, all))))
	a.start()
	a.eventually("there is room for the first", func() bool { return a.pods()["low"].Status.Phase == v1.PodRunning })
	a.write("vital.yaml", manifest("vital", "priority: 1000", containers(container("main", untilTerm, all))))
	a.eventually("the second runs, and the first has failed", func() bool {
		pods := a.pods()
		return pods["vital"].Status.Phase == v1.PodRunning && pods["low"].Status.Phase == v1.PodFailed
	})
	low := a.pods()["low"].Status
	assert.Equal(t, "Preempting: Preempted in order to admit critical pod", low.Reason+": "+low.Message)
	a.eventually("the status is printed", func() bool {
		return strings.Contains(a.out.String(), "Preempting: Preempted in order to admit critical pod")
	})

	a.write("late.yaml", manifest("late", "priority: 1", containers(container("main", untilTerm, all))))
	a.eventually("a later one is rejected", func() bool { return a.pods()["late"].Status.Reason == "UnexpectedAdmissionError" })
}

// A pod that waits for an object names it, on both pages.
func TestAPodThatWaitsForAnObjectReportsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an agent")
	}
	t.Parallel()
	a := newAgent(t, "process")
	a.write("waits.yaml", manifest("waits", "volumes: [{name: conf, secret: {secretName: s-test}}]",
		containers(container("main", untilTerm, "volumeMounts: [{name: conf, mountPath: /conf}]"))))
	a.start("--objects=" + t.TempDir())
	waits := regexp.MustCompile(`Failing to mount volumes for [0-9.ms]+: volume "conf": .*s-test.*; retry in `)
	for _, path := range []string{"/explain", "/"} {
		a.eventually(path+" names the Secret", func() bool {
			_, text, err := a.get(path)
			require.NoError(t, err)
			return waits.MatchString(html.UnescapeString(string(text)))
		})
	}
}

func TestThePageExplainsFailingPods(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "process")
	a.write("crash.yaml", manifest("crash", containers(container("main", "exit 3"))))
	a.write("nothing.yaml", manifest("nothing", containers(entry("main", "command: [/no/such/thing]"))))
	a.write("hook.yaml", manifest("hook", "terminationGracePeriodSeconds: 4",
		containers(container("main", untilTerm, "lifecycle: {preStop: {exec: {command: [sleep, '1000']}}}"))))
	a.start()
	explained := func(pod, what string) {
		var text string
		t.Helper()
		for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			_, body, err := a.get("/explain")
			require.NoError(t, err)
			text = string(body)
			for line := range strings.Lines(text) {
				if strings.Contains(line, "/"+pod+"-node") && regexp.MustCompile(what).MatchString(line) {
					return
				}
			}
			require.Less(t, time.Since(begun), patience, "%s: the page does not contain %q:\n%s", pod, what, text)
		}
	}
	explained("crash", `The last .*CrashLoopBackOff.*; retry in `)
	explained("nothing", `no such file or directory.*; retry in `)
	explained("hook", `is up to date; next check in `)
	a.write("hook.yaml", manifest("hook", "terminationGracePeriodSeconds: 5", containers(container("main", untilTerm))))
	explained("hook", `In progress for .*: stop containers.* \(removed\); grace period 4 s\.`)
	explained("hook", `Waiting for other pods to terminate .*The pod has not been started for `)
	explained("hook", `is up to date; next check in `)
}
