package main

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
	"github.com/kubeparts/kubeparts/internal/quiet"
	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// Sizes of the file systems that can be filled, in MiB.
const (
	agentDisk      = 64
	containerdDisk = 256
)

// nodeName is the agent's.
const nodeName = "chaos"

// A world is a node of a real cluster: a control plane, a containerd, a way between
// it and the agent that can be cut, and the agent; and the means to look at them
// past the agent.
type world struct {
	testing.TB // what the lab asks for; see lab.Program
	ctx        context.Context

	dir     string
	daemon  *lab.Daemon
	control *lab.ControlPlane
	socket  *proxy
	agent   *keeper
	judge   *judge

	api kubernetes.Interface // with all rights
	cri internalapi.RuntimeService

	noted  []string // what is to be told of the round; used by one goroutine, as is
	doomed []string // instances of which the processes were killed in this round

	healing sync.WaitGroup // what is not over with its round
	mu      sync.Mutex
	later   map[string][]time.Duration // how long that took, by kind
}

// healed notes how long it took to recover from a fault of which the effects are not
// over with its round.
func (w *world) healed(kind string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later[kind] = append(w.later[kind], took)
}

// note has something told of the round.
func (w *world) note(format string, args ...any) {
	w.noted = append(w.noted, fmt.Sprintf(format, args...))
}

// must ends the run with an error.
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
	building.Go(func() { failed = cli.BuildAgent(w.ctx, binary) })
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
	w.agent = &keeper{judge: j, agent: agent{
		binary: binary, addr: addr, log: w.agentLog(),
		args: []string{
			"--container-runtime-endpoint=unix://" + w.socket.path, "--root-dir=" + w.root(), "--pod-logs-dir=" + w.logs(), "--hostname-override=" + nodeName,
			"--kubeconfig=" + filepath.Join(w.dir, "kubeconfig"), "--bootstrap-kubeconfig=" + w.control.BootstrapKubeconfig(),
			"--listen=" + addr, "--port=-1", "--healthz-port=-1", "--cgroup-root=" + w.groups(), "--remember-pods", "--v=4",
		},
	}}
	t.Cleanup(func() { w.must("keep the logs", w.keepLogs(o.logs)) })
	t.Cleanup(func() { w.must("end the agent", w.agent.end()) })
	w.agent.begin(w.ctx)
	return w
}

// quietly keeps the CRI's client from writing to stderr of each call that fails.
func (w *world) quietly(ctx context.Context) context.Context {
	return quiet.Context(ctx, slog.New(slog.DiscardHandler))
}

func (w *world) root() string     { return filepath.Join(w.dir, "root") }
func (w *world) logs() string     { return filepath.Join(w.dir, "logs") }
func (w *world) agentLog() string { return filepath.Join(w.dir, "agent.log") }

// groups is a place in the machine's cgroups that no other agent has.
func (w *world) groups() string { return "/" + filepath.Base(w.dir) }

// keepLogs copies what is said into dir, unless that is empty.
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

// connect makes the clients that look past the agent.
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

// dial connects to containerd, past the socket that the agent uses.
func (w *world) dial(ctx context.Context) (internalapi.RuntimeService, error) {
	return cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(w.daemon.Endpoint).WithConnectionTimeout(5 * time.Second).Build(w.quietly(ctx))
}

// prepare makes what the pods need, and waits for the node.
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

// nodeReady returns why the API does not call the node ready.
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

// until calls check until it finds nothing wrong, or for so long.
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
