//go:build linux || darwin

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// program is the agent that tests start.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "agent")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "agent")
		if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			fmt.Fprintln(os.Stderr, string(out), err)
			return 1
		}
		return m.Run()
	}())
}

// patience bounds the wait for what happens eventually.
const patience = 90 * time.Second

// A world is the directories of an agent, and the agent that runs.
type world struct {
	t     *testing.T
	dir   string
	flags []string
	out   output
	cmd   *exec.Cmd
	url   string
}

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

func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), flags: flags}
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "manifests"), 0o755))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.out.String())
		}
		if w.cmd != nil && w.cmd.ProcessState == nil {
			_ = w.signal(syscall.SIGINT)
		}
		w.start("--stop-pods") // only an agent can stop what may still run
		assert.NoError(t, w.signal(syscall.SIGINT))
	})
	return w
}

var pageAt = regexp.MustCompile(`(http://\S+/) shows what runs here`)

// start starts an agent and returns when it serves.
func (w *world) start(more ...string) {
	w.t.Helper()
	before := len(w.out.String())
	args := append([]string{"--manifests=" + w.dir + "/manifests", "--objects=" + w.dir + "/objects", "--root=" + w.dir + "/root", "--node-name=node", "--listen=127.0.0.1:0"}, w.flags...)
	w.cmd = exec.Command(program, append(args, more...)...)
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.out
	require.NoError(w.t, w.cmd.Start())
	w.eventually("the agent serves", func() bool {
		at := pageAt.FindStringSubmatch(w.out.String()[before:])
		if at != nil {
			w.url = at[1]
		}
		return at != nil
	})
}

// signal signals the agent and returns how it ended.
func (w *world) signal(s os.Signal) error {
	if err := w.cmd.Process.Signal(s); err != nil {
		return err
	}
	return w.cmd.Wait()
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o644))
}

func (w *world) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(text)
}

func (w *world) get(path string) (int, string) {
	w.t.Helper()
	resp, err := http.Get(w.url + path)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp.StatusCode, string(body)
}

// status returns the status of a pod by the name in its manifest.
func (w *world) status(name string) v1.PodStatus {
	w.t.Helper()
	_, body := w.get("pods")
	var list v1.PodList
	require.NoError(w.t, json.Unmarshal([]byte(body), &list))
	for _, pod := range list.Items {
		if pod.Name == name+"-node" {
			return pod.Status
		}
	}
	return v1.PodStatus{}
}

func (w *world) eventually(what string, so func() bool) {
	w.t.Helper()
	for began := time.Now(); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience {
			w.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func (w *world) running(name string) {
	w.t.Helper()
	w.eventually(name+" is ready", func() bool {
		s := w.status(name)
		return s.Phase == v1.PodRunning && len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].Ready
	})
}

// pod returns a manifest whose container appends to the file "log" of a directory when it
// starts and when it is stopped.
func pod(name, dir, image string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 10
  volumes:
  - {name: conf, secret: {secretName: conf}}
  - {name: dir, hostPath: {path: %s}}
  containers:
  - name: main
    image: %s
    command: [sh, -c, "trap 'echo stopped >>$DIR/log; exit 0' TERM; echo started >>$DIR/log; while true; do sleep 0.1; done"]
    env: [{name: DIR, value: %q}, {name: TOKEN, valueFrom: {secretKeyRef: {name: conf, key: token}}}, {name: PASSWORD, value: literal-password}]
    volumeMounts: [{name: conf, mountPath: /conf}, {name: dir, mountPath: %q}]
    readinessProbe: {exec: {command: [sh, -c, "grep -q started $DIR/log"]}, periodSeconds: 1}
`, name, dir, image, dir, dir)
}

const secretManifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: conf}\nstringData: {token: secret-token}\n"

func TestPodsRunAsProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("manifests/web.yaml", pod("web", w.dir, "any"))
	w.start()
	w.eventually("the pod waits for its Secret, and names it", func() bool {
		_, text := w.get("explain")
		return strings.Contains(text, `volume "conf": secret "conf" not found; retry in `)
	})
	w.write("objects/conf.yaml", secretManifest)
	w.running("web")
	_, page := w.get("")
	for _, text := range []string{`href="pod/default/web-node"`, "Runs on process.", "Running", "main", "readiness"} {
		assert.Contains(t, page, text)
	}
	for _, path := range []string{"", "pods", "explain", "pod/default/web-node"} {
		code, text := w.get(path)
		assert.Equal(t, http.StatusOK, code, path)
		assert.NotContains(t, text, "literal-password", path)
		assert.NotContains(t, text, "secret-token", path)
	}
	code, _ := w.get("healthz")
	assert.Equal(t, http.StatusOK, code)

	w.write("manifests/wrong.yaml", "kind: Pod\n")
	w.eventually("the check of the manifests fails", func() bool {
		code, text := w.get("healthz")
		return code == 503 && strings.Contains(text, "[-] manifests: ")
	})
	w.eventually("the log names the file", func() bool {
		return strings.Contains(w.out.String(), "wrong.yaml: ")
	})
	require.NoError(t, os.Remove(filepath.Join(w.dir, "manifests", "wrong.yaml")))
	w.eventually("it succeeds again", func() bool { code, _ := w.get("healthz"); return code == 200 })

	// Ctrl-C stops the pods.
	require.NoError(t, w.signal(syscall.SIGINT))
	assert.Equal(t, "started\nstopped\n", w.read("log"))
	assert.Contains(t, w.out.String(), "stopping all pods")
}

func TestTheNextAgentTakesOverPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("objects/conf.yaml", secretManifest)
	w.write("manifests/web.yaml", pod("web", w.dir, "any"))
	w.start()
	w.running("web")
	before := w.status("web").ContainerStatuses[0].ContainerID
	require.Error(t, w.signal(syscall.SIGKILL))
	w.start("--stop-pods=false")
	w.running("web")
	assert.Equal(t, before, w.status("web").ContainerStatuses[0].ContainerID)

	require.NoError(t, w.signal(syscall.SIGTERM))
	assert.Contains(t, w.out.String(), "stopping; the pods keep running")
	assert.Equal(t, "started\n", w.read("log"), "it was neither stopped nor started again")
	w.start()
	w.running("web")
	require.NoError(t, w.signal(syscall.SIGTERM))
	assert.Equal(t, "started\nstopped\n", w.read("log"))
}

// A second signal ends the agent although a pod does not stop.
func TestASecondSignalLeavesPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("manifests/deaf.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: deaf}\nspec: {terminationGracePeriodSeconds: 3, containers: [{name: main, image: any, command: [sh, -c, \"trap '' TERM; sleep 600\"]}]}\n")
	w.start()
	w.running("deaf")
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGINT))
	w.eventually("the agent stops its pods", func() bool { return strings.Contains(w.out.String(), "stopping all pods") })
	var left *exec.ExitError
	require.ErrorAs(t, w.signal(syscall.SIGINT), &left)
	assert.Equal(t, syscall.SIGINT, left.Sys().(syscall.WaitStatus).Signal())
}

func TestTheExamplePodsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files, err := filepath.Glob("pods/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	port := freePort(t) // since another program may use 8080
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		w.write("manifests/"+filepath.Base(file), strings.ReplaceAll(string(text), "8080", port))
	}
	w.start()
	w.running("web")
	w.running("probed")
	w.eventually("job succeeds", func() bool { return w.status("job").Phase == v1.PodSucceeded })
	w.eventually("crash restarts", func() bool {
		s := w.status("crash").ContainerStatuses
		return len(s) > 0 && s[0].RestartCount > 0
	})
	for name, want := range map[string]string{"web": "hello from web-node\n", "probed": "I am well\n"} {
		resp, err := http.Get("http://" + net.JoinHostPort(w.status(name).PodIP, port))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, want, string(body))
	}
}

// freePort returns a port that no program listens on, at any address.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	return port
}

func TestTheOutputNamesAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	w := newWorld(t)
	text, err := os.ReadFile("pods/probed.yaml")
	require.NoError(t, err)
	w.write("manifests/probed.yaml", strings.ReplaceAll(string(text), "8080", port))
	w.start()
	w.eventually("the output names the port", func() bool {
		return strings.Contains(w.out.String(), "container server exited(1) agent: listen tcp") && strings.Contains(w.out.String(), port+": bind: address already in use")
	})
}

func TestAStartErrorNamesTheRemedy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no manifests":     {nil, []string{"no --manifests; name a file or a directory"}},
		"an argument":      {[]string{"--manifests=x", "web.yaml"}, []string{`unexpected argument "web.yaml"; see --help`}},
		"unknown runtime":  {[]string{"--manifests=x", "--runtime=docker"}, []string{"--runtime=docker; want process, or a socket such as unix:///"}},
		"missing socket":   {[]string{"--manifests=x", "--root=" + dir, "--runtime=unix://" + dir + "/sock"}, []string{"no such file or directory", "start a CRI runtime there, or name its socket with --runtime"}},
		"occupied address": {[]string{"--manifests=x", "--root=" + dir, "--listen=" + strings.Trim(w.url, "htp:/")}, []string{"address already in use", "choose another --listen"}},
		"root is a file":   {[]string{"--manifests=x", "--root=" + file}, []string{"create the root directory"}},
		"no host":          {[]string{"--manifests=x", "--root=" + dir, "--listen=:80"}, []string{"has no host: use 127.0.0.1:80"}},
		"root in use":      {[]string{"--manifests=x", "--root=" + w.dir + "/root"}, []string{"in use: another agent uses it (process", "choose another --root or --runtime"}},
		"node name":        {[]string{"--manifests=x", "--root=" + dir, "--node-name=my node"}, []string{`Invalid value: "my node"`}},
	} {
		out, err := exec.Command(program, tc.args...).CombinedOutput()
		require.Error(t, err, name)
		assert.Regexp(t, "^agent: .*\n$", string(out), name)
		for _, want := range tc.want {
			assert.Contains(t, string(out), want, name)
		}
		inUse := strings.Contains(string(out), "in use") // a hint that does not fit would mislead
		assert.Equal(t, inUse, strings.Contains(string(out), "stop the process that uses it"), "%s: %s", name, out)
	}
	out, err := exec.Command(program, "--help").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(out), "agent --manifests=DIR")
	assert.Contains(t, string(out), "-stop-pods")
}

// The same pods run as containers, and outlive the agent.
func TestIntegrationPodsRunAsContainers(t *testing.T) {
	w := newWorld(t, "--runtime="+lab.Containerd(t, lab.ContainerdConfig{}).Endpoint)
	w.write("objects/conf.yaml", secretManifest)
	w.write("manifests/web.yaml", pod("web", w.dir, lab.Busybox))
	w.start()
	w.running("web")
	_, page := w.get("")
	for _, text := range []string{lab.Busybox, "Last plan, ", "none would be removed now"} {
		assert.Contains(t, strings.ToLower(page), strings.ToLower(text))
	}
	require.NoError(t, w.signal(syscall.SIGTERM))
	assert.Contains(t, w.out.String(), "stopping; the pods keep running")
	w.start("--stop-pods")
	w.running("web")
	assert.Equal(t, "started\n", w.read("log"))
	require.NoError(t, w.signal(syscall.SIGINT))
	assert.Equal(t, "started\nstopped\n", w.read("log"))
}
