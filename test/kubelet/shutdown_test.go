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

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// recorder is a pod that records its SIGTERM in the file signals, and exits after so many seconds. It
// is in the file up when it would.
func recorder(name string, priority int, seconds int) string {
	return manifest(name, fmt.Sprintf("priority: %d", priority), "terminationGracePeriodSeconds: 30",
		containers(container("main", fmt.Sprintf("trap 'echo %[1]s >> WORLD/signals; sleep %[2]d; exit 0' TERM; echo %[1]s >> WORLD/up; while true; do sleep 0.1; done", name, seconds))))
}

// untilUp waits until the pods run, and have set their traps: each is in the file up.
func (w *world) untilUp(names ...string) {
	w.t.Helper()
	w.until("all run, and would notice", func() error {
		pods := w.pods()
		up, _ := os.ReadFile(filepath.Join(w.dir, "up"))
		for _, name := range names {
			if !runs(pods[name]) || !strings.Contains(string(up), name) {
				return fmt.Errorf("%v %q", lives(pods), up)
			}
		}
		return nil
	})
}

// wasShutDown checks a pod's final status (sh-9).
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

func signalOrder(t *testing.T, w *world) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "signals"))
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// shutdownRequest returns a request with the credentials of a user that may read the
// agent's files.
func (w *world) shutdownRequest(method, query string) *http.Request {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.addr+"/shutdown"+query, nil)
	require.NoError(w.t, err)
	header, err := os.ReadFile(filepath.Join(w.dir, "root", "shutdown-token"))
	require.NoError(w.t, err)
	name, value, _ := strings.Cut(strings.TrimSpace(string(header)), ": ")
	req.Header.Set(name, value)
	return req
}

// An agent that gets SIGTERM while it starts, because the machine stops, terminates
// its pods first.
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
	assert.Contains(t, a.out.String(), "the machine may shut down")
}

// A meeting blocks the first client that connects until it may proceed.
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

// The machine stops: the pods terminate in the order of their priorities, new pods are
// rejected, and after a cancellation pods run again.
func TestPodsEndInOrderWhenTheMachineStops(t *testing.T) { // sh-5, sh-6, sh-7, sh-9
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	t.Parallel()
	w := &world{agent: newAgent(t, "process")}
	w.put("dns", recorder("dns", 2_000_000_000, 0))
	w.put("web", recorder("web", 0, 1))
	w.start("--shutdown-on=http", "--shutdown-grace-period=80s", "--shutdown-grace-period-critical-pods=40s", "--shutdown-propagation=1s", "--v=4")
	w.untilUp("dns", "web")
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
	file, err := os.Stat(filepath.Join(w.dir, "root", "shutdown-token"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), file.Mode(), "of no other user")
	code, looks, err := w.get("/shutdown")
	require.NoError(t, err)
	assert.Equal(t, `200 {"stopping":false,"done":false}`, fmt.Sprint(code, " ", strings.TrimSpace(string(looks))), "reading needs no credentials")
	assert.Equal(t, http.StatusForbidden, post(http.MethodPost, "cross-site"))
	assert.Equal(t, http.StatusAccepted, post(http.MethodPost, ""))
	w.untilLogged("the machine shuts down; pods are being terminated")
	w.put("late", recorder("late", 0, 0))
	w.untilLogged("the machine may shut down") // late was rejected: it could have been another pod to terminate
	assert.Equal(t, []string{"web", "dns"}, signalOrder(t, w))
	pods := w.pods()
	wasShutDown(t, pods["web"])
	wasShutDown(t, pods["dns"])
	w.until("late is rejected", func() error {
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
	w.untilLogged("the shutdown of the machine was canceled")
	w.put("after", recorder("after", 0, 0))
	w.until("a later pod runs", func() error {
		if after := w.pods()["after"]; !runs(after) {
			return fmt.Errorf("%s %s", after.Status.Phase, after.Status.Message)
		}
		return nil
	})

	// SIGTERM starts a shutdown as well, after which the agent exits.
	w.kill()
	for _, name := range []string{"web", "dns", "late"} {
		w.take(name)
	}
	w.start("--shutdown-on=sigterm", "--shutdown-grace-period=80s")
	w.until("the next agent has the pod", func() error {
		if after := w.pods()["after"]; !runs(after) {
			return fmt.Errorf("%s %s", after.Status.Phase, after.Status.Message)
		}
		return nil
	})
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, w.cmd.Wait())
	assert.Equal(t, []string{"web", "dns", "after"}, signalOrder(t, w))
}
