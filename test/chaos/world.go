package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	internalapi "k8s.io/cri-api/pkg/apis"
	cri "k8s.io/cri-client/pkg"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// Sizes of the file systems that can be filled, in MiB.
const (
	agentDisk      = 64
	containerdDisk = 256
)

// nodeName is the name of the node.
const nodeName = "chaos"

// A world is a cluster with one node: a control plane, a containerd, a proxy between it and the
// agent, the agent, and clients that observe them independently of the agent.
type world struct {
	testing.TB // for package lab; see lab.Program
	ctx        context.Context

	dir     string
	daemon  *lab.Daemon
	control *lab.ControlPlane
	socket  *proxy
	agent   *agentKeeper
	judge   *judge

	api kubernetes.Interface // as cluster administrator
	cri internalapi.RuntimeService

	noted  []string // notes on the round; used by one goroutine, as is
	doomed []string // instances whose processes were killed in this round

	healing sync.WaitGroup // effects that outlast their rounds
	mu      sync.Mutex
	later   map[string][]time.Duration // their recovery times, by kind
}

// healed records the recovery time from a fault whose effects outlast its round.
func (w *world) healed(kind string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later[kind] = append(w.later[kind], took)
}

// note adds a note on the round.
func (w *world) note(format string, args ...any) {
	w.noted = append(w.noted, fmt.Sprintf(format, args...))
}

// must aborts the run if err is not nil.
func (w *world) must(what string, err error) {
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

func newWorld(t testing.TB, o options, j *judge, say func(string, ...any)) *world {
	w := &world{TB: t, ctx: t.Context(), judge: j, later: map[string][]time.Duration{}}
	w.must("name containerd", os.Setenv("KUBEPARTS_CONTAINERD", o.containerd))
	lab.Need(t, "containerd", "kubernetes")
	say("building the agent; starting containerd (%s) and a control plane (Kubernetes %s) of the run's own", o.containerd, lab.KubernetesVersion)
	w.dir = lab.Directory(t)
	binary := filepath.Join(w.dir, "agent")
	var building sync.WaitGroup
	var failed error
	building.Go(func() { failed = labenv.Build(w.ctx, binary) })
	t.Cleanup(building.Wait)
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Binary: o.containerd, RootMiB: containerdDisk})
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{})
	w.connect()

	building.Wait()
	w.must("make an agent", failed)
	var err error
	w.socket, err = newProxy(filepath.Join(w.dir, "cri.sock"), w.daemon.Endpoint[len("unix://"):])
	w.must("make a socket", err)
	t.Cleanup(func() { w.must("close the socket", w.socket.close()) })
	w.must("make a directory", os.Mkdir(w.root(), 0o755))
	w.must("make a file system for the agent", smallDisk(w.root(), agentDisk))
	t.Cleanup(func() { w.must("clean up", unmountAll(w.root())) })
	t.Cleanup(func() { w.must("remove cgroups", removeGroups(w.groups())) })
	addr, err := freeAddr()
	w.must("find a port", err)
	w.agent = &agentKeeper{judge: j, agent: agent{
		binary: binary, addr: addr, log: w.agentLog(), record: o.record,
		args: []string{
			"--container-runtime-endpoint=unix://" + w.socket.path, "--root-dir=" + w.root(), "--pod-logs-dir=" + w.logs(), "--hostname-override=" + nodeName,
			"--kubeconfig=" + filepath.Join(w.dir, "kubeconfig"), "--bootstrap-kubeconfig=" + w.control.BootstrapKubeconfig(),
			"--listen=" + addr, "--healthz-port=-1", "--cgroup-root=" + w.groups(), "--remember-pods", "--v=4",
		},
	}}
	w.must("prepare profiles", w.profile(o.profile))
	t.Cleanup(func() { w.must("keep the logs", w.keepLogs(o.logs)) })
	t.Cleanup(func() { w.must("end the agent", w.agent.end()) })
	w.agent.begin(w.ctx)
	return w
}

// quietly returns a context with which the CRI's client does not log failed calls to stderr.
func (w *world) quietly(ctx context.Context) context.Context {
	return logs.Context(ctx, slog.New(slog.DiscardHandler))
}

func (w *world) root() string     { return filepath.Join(w.dir, "root") }
func (w *world) logs() string     { return filepath.Join(w.dir, "logs") }
func (w *world) agentLog() string { return filepath.Join(w.dir, "agent.log") }

// groups returns the parent of the agent's cgroups, which no other agent uses.
func (w *world) groups() string { return "/" + filepath.Base(w.dir) }

// keepLogs copies the logs to dir, unless that is empty.
func (w *world) keepLogs(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	said, err := os.ReadFile(w.agentLog())
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "agent.log"), said, 0o644),
		os.WriteFile(filepath.Join(dir, "containerd.log"), []byte(w.daemon.Log(1_000_000)), 0o644),
	)
}

// connect creates the clients.
func (w *world) connect() {
	config, err := clientcmd.BuildConfigFromFlags("", w.control.Kubeconfig)
	w.must("read a kubeconfig", err)
	config.QPS = -1
	config.Timeout = 0 // of watches
	w.api, err = kubernetes.NewForConfig(config)
	w.must("make a client of the API", err)
	w.cri, err = w.dial(w.ctx)
	w.must("connect to containerd", err)
	w.Cleanup(func() { _ = w.cri.Close(context.WithoutCancel(w.ctx)) })
}

// dial connects to containerd, not through the proxy.
func (w *world) dial(ctx context.Context) (internalapi.RuntimeService, error) {
	return cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(w.daemon.Endpoint).WithConnectionTimeout(5 * time.Second).Build(w.quietly(ctx))
}

// prepare creates the objects that pods refer to and waits for the node.
func (w *world) prepare(ctx context.Context) error {
	_, err := w.api.CoreV1().ConfigMaps(namespace).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Data: map[string]string{"key": "value"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return until(ctx, 2*time.Minute, func() error {
		if _, err := w.api.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		return w.nodeReady(ctx)
	})
}

// nodeReady returns an error if the node is not ready.
func (w *world) nodeReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	node, err := w.api.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s: %s", c.Reason, c.Message)
		} else if c.Type == v1.NodeReady {
			return nil
		}
	}
	return errors.New("the node has no condition Ready")
}

// until calls check until it returns nil, at most for a time.
func until(ctx context.Context, bound time.Duration, check func() error) error {
	for begun := time.Now(); ; {
		err := check()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case time.Since(begun) > bound:
			return fmt.Errorf("not within %v: %w", bound, err)
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
