//go:build unix

package kubelet

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/shutdown"
)

func TestGroupsAreTheConfigurations(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string
		want  []shutdown.Group
		fails string
	}{
		"sh-1 nothing":       {file: ""},
		"sh-2 two periods":   {file: "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n", want: []shutdown.Group{{Priority: 0, Period: 20 * time.Second}, {Priority: 2_000_000_000, Period: 10 * time.Second}}},
		"sh-2 a longer part": {file: "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 10s\n", fails: "shutdownGracePeriod, shutdownGracePeriodCriticalPods: shutdown: the grace period of critical pods is 10s, which is more than that in all, 5s"},
		"a typo":             {file: "shutdownGracePeriod: 30ms\n", fails: "shutdownGracePeriod, shutdownGracePeriodCriticalPods: shutdown: the grace period in all is 30ms: want 0, or 1s at least"},
		"less than nothing":  {file: "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: -5s\n", fails: "shutdownGracePeriod, shutdownGracePeriodCriticalPods: shutdown: the grace period of critical pods is -5s: want 0, or 1s at least"},
		"sh-3 by priority":   {file: "shutdownGracePeriod: 30s\nshutdownGracePeriodByPodPriority: [{priority: 100, shutdownGracePeriodSeconds: 7}, {priority: 0, shutdownGracePeriodSeconds: 3}]\n", want: []shutdown.Group{{Priority: 100, Period: 7 * time.Second}, {Priority: 0, Period: 3 * time.Second}}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseFlags([]string{"--manifests=/b", "--config=" + configFile(t, tc.file)})
			require.NoError(t, err)
			groups, err := shutdownGroups(o.kubelet)
			if tc.fails != "" {
				require.EqualError(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, groups)
		})
	}
}

func TestTriggersThatCannotBeAreErrors(t *testing.T) {
	for says, k := range map[string]struct {
		on     string
		period time.Duration
	}{
		"--shutdown-on: pods have no time to end": {"sigterm", 0},
		`--shutdown-on: "sun" is none of logind`:  {"sigterm,sun", time.Second},
	} {
		a := &assembly{opts: options{nodeName: "n1", shutdown: shutdownOptions{on: k.on}, kubelet: kubeletconfig.KubeletConfiguration{}}, pods: new(view)}
		a.opts.kubelet.ShutdownGracePeriod.Duration = k.period
		var err error
		a.count, err = newCounters(a.opts)
		require.NoError(t, err)
		_, err = a.departures()
		assert.ErrorContains(t, err, says)
	}
}

// teller is a pod that writes down when it is told to end, and takes its time.
func teller(name string, priority int, seconds int) string {
	return manifest(name, fmt.Sprintf("priority: %d", priority), "terminationGracePeriodSeconds: 30",
		containers(container("main", fmt.Sprintf("trap 'echo %s >> WORLD/told; sleep %d; exit 0' TERM; while true; do sleep 0.1; done", name, seconds))))
}

// wasShutDown checks a pod's last word (sh-9).
func wasShutDown(t *testing.T, pod v1.Pod) {
	t.Helper()
	s := pod.Status
	assert.Equal(t, v1.PodFailed, s.Phase, pod.Name)
	assert.Equal(t, "Terminated", s.Reason, pod.Name)
	assert.Equal(t, "Pod was terminated in response to imminent node shutdown.", s.Message, pod.Name)
	var disrupted *v1.PodCondition
	for i, c := range s.Conditions {
		if c.Type == v1.DisruptionTarget {
			disrupted = &s.Conditions[i]
		}
	}
	if assert.NotNil(t, disrupted, pod.Name) {
		assert.Equal(t, v1.PodReasonTerminationByKubelet, disrupted.Reason)
		assert.Equal(t, s.Message, disrupted.Message)
	}
}

func toldInOrder(t *testing.T, w *world) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "told"))
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// shutdownRequest is one of who may read the agent's files.
func (w *world) shutdownRequest(method, query string) *http.Request {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.addr+"/shutdown"+query, nil)
	require.NoError(w.t, err)
	header, err := os.ReadFile(filepath.Join(w.dir, "root", tokenFile))
	require.NoError(w.t, err)
	name, value, _ := strings.Cut(strings.TrimSpace(string(header)), ": ")
	req.Header.Set(name, value)
	return req
}

// An agent that is told to end while it starts, since the machine stops, ends its pods
// first (F-62).
func TestATermWhileTheAgentStartsIsAShutdown(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an agent")
	}
	t.Parallel()
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	met := &meeting{first: make(chan struct{}), goOn: make(chan struct{})}
	endpoint, _ := serveFakeCRI(t, fake, func(l net.Listener) net.Listener { met.Listener = l; return met })

	a := newAgent(t, endpoint)
	a.launch("--shutdown-on=sigterm", "--shutdown-grace-period=60s")
	select {
	case <-met.first:
	case <-time.After(patience):
		t.Fatal("the agent does not ask for the runtime: " + a.out.String())
	}
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	close(met.goOn)
	require.NoError(t, a.cmd.Wait(), a.out.String())
	assert.Contains(t, a.out.String(), "stopping, as the machine does")
}

// A meeting holds the first who connects until it may go on.
type meeting struct {
	net.Listener
	once        sync.Once
	first, goOn chan struct{}
}

func (m *meeting) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	if err == nil {
		m.once.Do(func() { close(m.first) })
		<-m.goOn
	}
	return conn, err
}

// The machine stops: the pods end in the order of their priorities, who comes then is
// sent away, and when it is called off all is as before.
func TestPodsEndInOrderWhenTheMachineStops(t *testing.T) { // sh-5, sh-6, sh-7, sh-9, F-63
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	t.Parallel()
	w := &world{agent: newAgent(t, "process")}
	w.put("dns", teller("dns", 2_000_000_000, 0))
	w.put("web", teller("web", 0, 1))
	w.start("--shutdown-on=http,sigterm", "--shutdown-grace-period=80s", "--shutdown-grace-period-critical-pods=40s", "--shutdown-propagation=1s", "-v")
	w.until("both are ready", func() error {
		if pods := w.pods(); !runs(pods["web"]) || !runs(pods["dns"]) {
			return fmt.Errorf("%v", lives(pods))
		}
		return nil
	})
	post := func(method, header string) int {
		req := w.shutdownRequest(method, "")
		if header != "" {
			req.Header.Set("Sec-Fetch-Site", header)
		}
		answer, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	for _, token := range []string{"", "Bearer", "Bearer " + strings.Repeat("A", 26)} {
		req := w.shutdownRequest(http.MethodPost, "")
		req.Header.Set("Authorization", token)
		answer, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	}
	file, err := os.Stat(filepath.Join(w.dir, "root", tokenFile))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), file.Mode(), "of no other user")
	code, looks, err := w.get("/shutdown")
	require.NoError(t, err)
	assert.Equal(t, `200 {"stopping":false,"done":false}`, fmt.Sprint(code, " ", strings.TrimSpace(string(looks))), "anybody may look")
	assert.Equal(t, http.StatusForbidden, post(http.MethodPost, "cross-site"))
	assert.Equal(t, http.StatusAccepted, post(http.MethodPost, ""))
	w.told("the machine is about to stop")
	w.put("late", teller("late", 0, 0))
	w.told("the machine may stop: ") // late may have been one more to end: it was just sent away
	assert.Equal(t, []string{"web", "dns"}, toldInOrder(t, w))
	pods := w.pods()
	wasShutDown(t, pods["web"])
	wasShutDown(t, pods["dns"])
	w.until("late is sent away", func() error {
		if s := w.pods()["late"].Status; s.Reason != "NodeShutdown" || s.Message != "Pod was rejected: Pod was rejected as the node is shutting down." {
			return fmt.Errorf("%s %s %s", s.Phase, s.Reason, s.Message)
		}
		return nil
	})
	text, err := os.ReadFile(filepath.Join(w.dir, "root", "graceful_node_shutdown_state")) // sh-11
	require.NoError(t, err)
	var times struct{ StartTime, EndTime time.Time }
	require.NoError(t, json.Unmarshal(text, &times))
	assert.Positive(t, times.EndTime.Sub(times.StartTime))

	assert.Equal(t, http.StatusOK, post(http.MethodDelete, ""))
	w.told("the machine does not stop, after all")
	w.put("after", teller("after", 0, 0))
	w.until("who comes after that runs", func() error {
		if after := w.pods()["after"]; !runs(after) {
			return fmt.Errorf("%s %s", after.Status.Phase, after.Status.Message)
		}
		return nil
	})

	// A TERM is a shutdown as well, after which the agent ends (F-62).
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, w.cmd.Wait())
	assert.Contains(t, w.out.String(), "stopping, as the machine does")
	assert.Equal(t, []string{"web", "dns", "after"}, toldInOrder(t, w))
}
