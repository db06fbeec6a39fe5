package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/images"
)

const nodeName = "conformance"

// machineRoot is the root directory of kubelets, which some tests expect.
const machineRoot = "/var/lib/kubelet"

// A world is a cluster with one node: a control plane, a registry with the suite's images, a
// containerd, and the node's process.
type world struct {
	testing.TB // for package lab; see lab.Program

	dir     string
	root    string // directory of the node
	daemon  *lab.Daemon
	control *lab.ControlPlane
	api     kubernetes.Interface // as cluster administrator
	agent   *exec.Cmd
	ended   chan struct{} // closed when the agent has terminated
}

// must aborts the run if err is not nil.
func (w *world) must(what string, err error) {
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

func newWorld(t testing.TB, o options, say func(string, ...any)) *world {
	w := &world{TB: t, ended: make(chan struct{})}
	daemon := lab.FindContainerd()
	w.must("name containerd", os.Setenv("KUBEPARTS_CONTAINERD", daemon))
	lab.Need(t, "containerd", "kubernetes")
	say("building the node and images; starting containerd (%s) and a control plane (Kubernetes %s)", daemon, lab.KubernetesVersion)
	w.dir = lab.Directory(t)
	w.root = filepath.Join(w.dir, "root")
	if o.kind.machineRoot {
		w.root = machineRoot
		w.must("mount directories", ownMachineDirs(w.dir))
		t.Cleanup(func() { w.must("unmount directories", removeMachineDirs()) })
	}
	binary := filepath.Join(w.dir, "agent")
	var building sync.WaitGroup
	var failed error
	building.Go(func() { failed = cli.BuildAgent(t.Context(), binary) })
	t.Cleanup(building.Wait)

	registry := lab.NewRegistry(t)
	w.must("build images", images.Maker{Tools: o.tools, Dir: w.dir}.Serve(registry, filepath.Join(o.tools, o.kind.binary)))
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Binary: daemon, Mirror: "http://" + registry.Host, MirrorHosts: []string{images.Host}})
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{NodeMonitorGrace: 40 * time.Second, APIServer: o.kind.apiServer, FeatureGates: o.kind.gates})
	config, err := clientcmd.BuildConfigFromFlags("", w.control.Kubeconfig)
	w.must("read a kubeconfig", err)
	w.api, err = kubernetes.NewForConfig(config)
	w.must("create a client", err)

	building.Wait()
	w.must("build the agent", failed)
	t.Cleanup(func() { w.must("keep the logs", w.keepLogs(o.logs)) })
	port := usualPort
	if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err != nil {
		say("%v: the node uses another port; the few tests that connect to this port will fail", err)
		port = -1
	} else {
		l.Close()
	}
	w.start(binary, port)
	return w
}

// usualPort is the port of kubelets, which some tests connect to.
const usualPort = 10250

// start starts the node with a bootstrap token. Its server accepts client certificates of the
// cluster.
func (w *world) start(binary string, port int) {
	ca := filepath.Join(w.dir, "ca.crt")
	w.must("write a certificate", os.WriteFile(ca, w.control.CA(), 0o600))
	log, err := os.Create(w.agentLog())
	w.must("create a log", err)
	defer log.Close()
	w.agent = exec.Command(binary,
		"--container-runtime-endpoint="+w.daemon.Endpoint, "--root-dir="+w.root, "--pod-logs-dir="+filepath.Join(w.dir, "logs"),
		"--hostname-override="+nodeName, "--kubeconfig="+filepath.Join(w.dir, "kubeconfig"), "--bootstrap-kubeconfig="+w.control.BootstrapKubeconfig(),
		"--listen=127.0.0.1:0", fmt.Sprintf("--port=%d", port), "--healthz-port=-1", "--client-ca-file="+ca,
		"--cgroup-root=/"+filepath.Base(w.dir), "--v=4")
	w.agent.Stdout, w.agent.Stderr = log, log
	w.must("start the agent", w.agent.Start())
	go func() {
		defer close(w.ended)
		_ = w.agent.Wait() // its log has the error
	}()
	w.Cleanup(func() {
		_ = w.agent.Process.Signal(os.Interrupt) // it may have terminated
		select {
		case <-w.ended:
		case <-time.After(time.Minute):
			w.must("kill the agent", w.agent.Process.Kill())
			<-w.ended
		}
	})
}

func (w *world) agentLog() string { return filepath.Join(w.dir, "agent.log") }

// keepLogs copies the logs to dir, unless that is empty.
func (w *world) keepLogs(dir string) error {
	if dir == "" {
		return nil
	}
	text, err := os.ReadFile(w.agentLog())
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "agent.log"), text, 0o644),
		os.WriteFile(filepath.Join(dir, "containerd.log"), []byte(w.daemon.Log(1_000_000)), 0o644),
		os.WriteFile(filepath.Join(dir, "control-plane.log"), []byte(w.control.Log(100_000)), 0o644),
	)
}

// nodeReady waits until the node is ready.
func (w *world) nodeReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		node, err := w.api.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil {
			err = errors.New("no condition Ready")
			for _, c := range node.Status.Conditions {
				if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
					return nil
				} else if c.Type == v1.NodeReady {
					err = fmt.Errorf("%s: %s", c.Reason, c.Message)
				}
			}
		}
		select {
		case <-w.ended:
			text, _ := os.ReadFile(w.agentLog())
			return fmt.Errorf("the node has terminated: %s", text[max(0, len(text)-2000):])
		case <-ctx.Done():
			return fmt.Errorf("the node is not ready: %w", err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}
