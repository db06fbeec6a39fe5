package kubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// patience bounds the wait for eventual actions of the agent, on a busy machine.
const patience = 90 * time.Second

// An agent is a process of the agent under test, running or exited.
type agent struct {
	t         *testing.T
	runtime   string // the flag's value
	dir       string
	manifests string
	addr      string                         // of the status page; a path if it is a socket
	listen    []string                       // the flag --listen, or nothing
	flags     []string                       // in addition to those that every agent gets
	command   func(args ...string) *exec.Cmd // starts the kubelet in other namespaces; nil: in those of the test
	cmd       *exec.Cmd
	out       *output

	stopSignal os.Signal // of interrupt; nil: SIGINT

	abandoned bool // its runtime is gone: the test's cleanup does not stop pods
}

// newAgent returns an agent with new directories, not started yet. Its processes are
// stopped when the test ends.
func newAgent(t *testing.T, runtime string) *agent {
	t.Helper()
	return newAgentIn(t, runtime, t.TempDir())
}

// newAgentIn is newAgent with a given directory.
func newAgentIn(t *testing.T, runtime, dir string) *agent {
	t.Helper()
	a := &agent{t: t, runtime: runtime, dir: dir, out: new(output), listen: []string{"--listen=127.0.0.1:0"}}
	a.manifests = filepath.Join(a.dir, "manifests")
	require.NoError(t, os.Mkdir(a.manifests, 0o755))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last output of the kubelet:\n%s", a.out.tail(60))
		}
		if !a.abandoned {
			if a.cmd == nil || a.cmd.ProcessState != nil {
				a.start() // something may run that only an agent can stop
			}
			require.NoError(t, a.interrupt())
		}
		require.NoError(t, a.removeLinks())
		if runtime != "process" { // it has made a mount of its root
			_ = exec.Command("umount", "--lazy", filepath.Join(a.dir, "root")).Run()
		}
		a.cgroupsGo()
	})
	return a
}

// removeLinks removes the links to logs of the test: those of containers that were not removed before
// their runtime ended remain.
func (a *agent) removeLinks() error {
	const links = "/var/log/containers"
	entries, err := os.ReadDir(links)
	if err != nil {
		return nil // there are none
	}
	var errs []error
	for _, e := range entries {
		link := filepath.Join(links, e.Name())
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, a.dir+string(filepath.Separator)) {
			errs = append(errs, os.Remove(link))
		}
	}
	return errors.Join(errs...)
}

// pageAt matches the line with the address of the status page.
var pageAt = regexp.MustCompile(`(?:http://(\S+)/|curl --unix-socket (\S+) http://localhost/) shows what runs here`)

// start starts the agent, and returns when it serves.
func (a *agent) start(more ...string) {
	a.t.Helper()
	before := len(a.out.String())
	a.launch(more...)
	a.serves(before)
}

// serves waits until the agent serves, whose output begins at an offset.
func (a *agent) serves(before int) {
	a.t.Helper()
	a.eventually("the agent serves", func() bool {
		where := pageAt.FindStringSubmatch(a.out.String()[before:])
		if where == nil {
			return false
		}
		a.addr = where[1] + where[2]
		_, _, err := a.get("/healthz")
		return err == nil
	})
}

// launch starts it, and waits for nothing.
func (a *agent) launch(more ...string) {
	a.t.Helper()
	start := a.command
	if start == nil {
		start = func(args ...string) *exec.Cmd { return exec.Command(program(a.t), args...) }
	}
	a.cmd = start(slices.Concat([]string{
		"--container-runtime-endpoint=" + a.runtime, "--pod-manifest-path=" + a.manifests, "--root-dir=" + filepath.Join(a.dir, "root"),
		"--pod-logs-dir=" + a.logs(), "--hostname-override=node", "--cgroup-root=" + a.cgroupRoot(),
	}, a.listen, a.stopPods(more), a.flags, more)...)
	a.cmd.Stdout, a.cmd.Stderr = a.out, a.out
	require.NoError(a.t, a.cmd.Start())
}

// stopPods returns the flag that makes a signal stop the pods as well, so that nothing
// outlives the test. It does not apply to pods of a cluster.
func (a *agent) stopPods(more []string) []string {
	clustered := func(flag string) bool { return strings.HasPrefix(flag, "--kubeconfig=") }
	if slices.ContainsFunc(slices.Concat(a.flags, more), clustered) {
		return nil
	}
	return []string{"--stop-pods"}
}

func (a *agent) logs() string { return filepath.Join(a.dir, "logs") }

// kill ends the agent as kill -9 does. Its pods go on.
func (a *agent) kill() {
	a.t.Helper()
	require.NoError(a.t, a.cmd.Process.Kill())
	_ = a.cmd.Wait() // returns the error of the kill
}

// interrupt ends the agent as Ctrl-C does, and returns what came of that.
func (a *agent) interrupt() error {
	stop := a.stopSignal
	if stop == nil {
		stop = syscall.SIGINT
	}
	if err := a.cmd.Process.Signal(stop); err != nil {
		return err
	}
	return a.cmd.Wait()
}

func (a *agent) get(path string) (int, []byte, error) {
	transport, host := &http.Transport{DisableKeepAlives: true}, a.addr
	if strings.HasPrefix(a.addr, "/") {
		host = "localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", a.addr)
		}
	}
	client := http.Client{Timeout: patience, Transport: transport}
	answer, err := client.Get("http://" + host + path)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// healthz returns whether the agent reports itself healthy, and the body.
func (a *agent) healthz() (bool, string) {
	a.t.Helper()
	code, body, err := a.get("/healthz")
	require.NoError(a.t, err)
	return code == http.StatusOK, string(body)
}

// pods returns what /pods lists, by name without the node's.
func (a *agent) pods() map[string]v1.Pod {
	a.t.Helper()
	_, body, err := a.get("/pods")
	require.NoError(a.t, err)
	var list v1.PodList
	require.NoError(a.t, json.Unmarshal(body, &list))
	pods := map[string]v1.Pod{}
	for _, pod := range list.Items {
		pods[strings.TrimSuffix(pod.Name, "-node")] = pod
	}
	return pods
}

// write puts a manifest in its place, whole.
func (a *agent) write(name, manifest string) {
	a.t.Helper()
	tmp := filepath.Join(a.dir, name)
	require.NoError(a.t, os.WriteFile(tmp, []byte(manifest), 0o644))
	require.NoError(a.t, os.Rename(tmp, filepath.Join(a.manifests, name)))
}

func (a *agent) remove(name string) {
	a.t.Helper()
	require.NoError(a.t, os.Remove(filepath.Join(a.manifests, name)))
}

// eventually waits until something is so.
func (a *agent) eventually(what string, so func() bool) {
	a.t.Helper()
	for begun := time.Now(); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > patience {
			a.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// An output is the combined output of the agents of one test.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// tail returns the last lines of it.
func (o *output) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(o.String()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// untilLogged waits until the agent has printed text.
func (w *world) untilLogged(what string) {
	w.t.Helper()
	w.until("the agent prints "+what, func() error {
		if !strings.Contains(w.out.String(), what) {
			return fmt.Errorf("it has not")
		}
		return nil
	})
}
