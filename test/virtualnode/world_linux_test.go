// Package virtualnode tests examples/virtualnode, a kubelet over a VM service, as a process and as a node
// of a real control plane.
package virtualnode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// patience bounds each wait, on a busy machine.
const patience = 90 * time.Second

const examplePackage = "github.com/kubeparts/kubeparts/examples/virtualnode"

var binaries string // a directory

func TestMain(m *testing.M) {
	var err error
	if binaries, err = os.MkdirTemp("", "virtualnode"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(binaries)
	os.Exit(code)
}

func program() string { return filepath.Join(binaries, "virtualnode") }
func service() string { return filepath.Join(binaries, "service") }

// build builds the example, and its test, which is the VM service.
var build = sync.OnceValue(func() error {
	for _, args := range [][]string{{"build", "-o", program(), examplePackage}, {"test", "-c", "-o", service(), examplePackage}} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w\n%s", args, err, out)
		}
	}
	return nil
})

// A world is a control plane with one node, whose VM service is a process that outlives the node.
type world struct {
	t       *testing.T
	dir     string
	control *lab.ControlPlane
	kubectl *lab.Kubectl
	args    []string
	node    *exec.Cmd // nil: it does not run
	out     *output
	proxy   *proxy
}

// An output is the output of processes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	lab.Need(t, "kubernetes", "kubectl", "busybox")
	dir, err := os.MkdirTemp("", "vn") // paths of sockets must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, out: new(output)}
	require.NoError(t, build())
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{})
	w.kubectl = lab.NewKubectl(t, w.control.Kubeconfig)

	socket := filepath.Join(dir, "vms")
	vms := exec.Command(service())
	vms.Env = append(os.Environ(), "VIRTUALNODE_SERVICE="+socket)
	stdin, err := vms.StdinPipe()
	require.NoError(t, err)
	vms.Stdout, vms.Stderr = w.out, w.out
	require.NoError(t, vms.Start())
	t.Cleanup(func() { _ = stdin.Close(); _ = vms.Wait() }) // it kills its machines
	w.proxy = newProxy(t, filepath.Join(dir, "proxy"), socket)

	ca := filepath.Join(dir, "ca.crt")
	require.NoError(t, os.WriteFile(ca, w.control.CA(), 0o600))
	w.args = []string{
		"--service=" + filepath.Join(dir, "proxy"), "--kubeconfig=" + w.control.NodeKubeconfig("vms"), "--node-name=vms",
		"--root-dir=" + filepath.Join(dir, "root"), "--client-ca-file=" + ca, "--port=-1",
	}
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			text := w.out.String()
			t.Logf("the last output:\n%s", text[max(0, len(text)-6000):])
		}
	})
	w.until("the VM service", func() error { _, err := w.machines(); return err })
	w.start()
	w.ok("wait", "node/vms", "--for=create", "--timeout="+patience.String())
	w.ok("wait", "node/vms", "--for=condition=Ready", "--timeout="+patience.String())
	w.until("the service account", func() error { _, err := w.run("", "get", "serviceaccount", "default"); return err })
	return w
}

// start starts the node.
func (w *world) start() {
	w.t.Helper()
	w.node = exec.Command(program(), w.args...)
	w.node.Stdout, w.node.Stderr = w.out, w.out
	require.NoError(w.t, w.node.Start())
	w.proxy.setVictim(w.node.Process)
}

// kill kills the node with SIGKILL, if it runs, and waits for its end.
func (w *world) kill() {
	if w.node != nil {
		_ = w.node.Process.Kill()
		_ = w.node.Wait() // the signal is reported as an error
		w.node = nil
	}
}

// run runs kubectl with an input and returns its output.
func (w *world) run(in string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*patience)
	defer cancel()
	cmd := w.kubectl.Command(ctx, args...)
	cmd.Stdin = strings.NewReader(in)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %v: %w: %s%s", args, err, out.String(), errOut.String())
	}
	return out.String(), nil
}

func (w *world) ok(args ...string) string {
	w.t.Helper()
	out, err := w.run("", args...)
	require.NoError(w.t, err)
	return out
}

func (w *world) apply(manifest string) {
	w.t.Helper()
	_, err := w.run(manifest, "apply", "-f", "-")
	require.NoError(w.t, err)
}

// background starts a kubectl that is killed when the test ends.
func (w *world) background(t *testing.T, args ...string) *output {
	t.Helper()
	out, cmd := new(output), w.kubectl.Command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return out
}

// machines returns the list of the VM service, as JSON.
func (w *world) machines() (string, error) {
	resp, err := (&http.Client{Transport: w.proxy.forward.Transport}).Get("http://service/machines")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return strings.TrimSpace(string(text)), err
}

func (w *world) until(what string, check func() error) {
	w.t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		require.Less(w.t, time.Since(begun), patience, "%s: %v", what, err)
	}
}

// A proxy forwards the calls of the node to the VM service, and kills the node at one of them.
type proxy struct {
	forward *httputil.ReverseProxy

	mu     sync.Mutex
	victim *os.Process
	calls  int // that change something
	at     int // the one at which the node is killed; 0: at none
	after  bool
	killed chan string // receives the call
}

func newProxy(t *testing.T, socket, to string) *proxy {
	t.Helper()
	p := &proxy{killed: make(chan string, 1)}
	p.forward = &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "service" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", to)
		}},
	}
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{Handler: p}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

func (p *proxy) setVictim(process *os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.victim = process
}

// killAt kills the node at a call from now on that changes something: before it takes
// effect, or after that and before the response.
func (p *proxy) killAt(call int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.at, p.after = 0, call, after
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if r.Method != http.MethodGet {
		p.calls++
	}
	kill, after, victim := r.Method != http.MethodGet && p.calls == p.at, p.after, p.victim
	p.mu.Unlock()
	if !kill {
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.forward.ServeHTTP(w, r)
		return
	}
	if after {
		lost := new(lostResponse)
		// The call takes effect, also if the node is gone.
		p.forward.ServeHTTP(lost, r.WithContext(context.WithoutCancel(r.Context())))
	}
	_ = victim.Kill()
	p.killed <- r.Method + " " + r.URL.Path
}

// A lostResponse discards a response.
type lostResponse struct{ header http.Header }

func (l *lostResponse) Header() http.Header {
	if l.header == nil {
		l.header = http.Header{}
	}
	return l.header
}
func (*lostResponse) Write(p []byte) (int, error) { return len(p), nil }
func (*lostResponse) WriteHeader(int)             {}
