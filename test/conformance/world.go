package conformance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/images"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

const nodeName = "conformance"

// machineRoot is the root directory of kubelets, which some tests expect.
const machineRoot = "/var/lib/kubelet"

// A world is a cluster with one node: a control plane, a registry with the suite's images, a
// containerd, and the node's process.
type world struct {
	*labenv.Env

	root    string // directory of the node
	daemon  *lab.Daemon
	control *lab.ControlPlane
	api     kubernetes.Interface // as cluster administrator
	node    *labenv.Process
}

func newWorld(t testing.TB, o options, say func(string, ...any)) *world {
	w := &world{Env: labenv.New(t, "", "containerd", "kubernetes")}
	say("building the node and images; starting containerd (%s) and a control plane (Kubernetes %s)", os.Getenv("KUBEPARTS_CONTAINERD"), lab.KubernetesVersion)
	w.root = filepath.Join(w.Dir, "root")
	if o.kind.machineRoot {
		w.root = machineRoot
		// Directories that the tests have in their code.
		remove, err := isolate.Directories(w.Dir, machineRoot, "/run/cdi")
		t.Cleanup(func() { w.Must("unmount directories", remove()) })
		w.Must("mount directories", err)
	}
	binary := filepath.Join(w.Dir, "agent")
	built := w.BuildNode(binary)

	registry := lab.NewRegistry(t)
	w.Must("build images", images.Maker{Tools: o.tools, Dir: w.Dir}.Serve(registry, filepath.Join(o.tools, o.kind.binary)))
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Mirror: "http://" + registry.Host, MirrorHosts: []string{images.Host}})
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{NodeMonitorGrace: 40 * time.Second, APIServer: o.kind.apiServer, FeatureGates: o.kind.gates})
	w.api, _ = w.Client(w.control.Kubeconfig)
	built()
	t.Cleanup(func() { w.Must("keep the logs", w.keepLogs(o.logs)) })
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
	ca := filepath.Join(w.Dir, "ca.crt")
	w.Must("write a certificate", os.WriteFile(ca, w.control.CA(), 0o600))
	var err error
	w.node, err = labenv.Start(binary, []string{
		"--container-runtime-endpoint=" + w.daemon.Endpoint, "--root-dir=" + w.root, "--pod-logs-dir=" + filepath.Join(w.Dir, "logs"),
		"--hostname-override=" + nodeName, "--kubeconfig=" + filepath.Join(w.Dir, "kubeconfig"), "--bootstrap-kubeconfig=" + w.control.BootstrapKubeconfig(),
		"--listen=127.0.0.1:0", fmt.Sprintf("--port=%d", port), "--healthz-port=-1", "--client-ca-file=" + ca,
		"--cgroup-root=" + w.Cgroup(), "--v=4",
	}, w.agentLog())
	w.Must("start the node", err)
	w.Cleanup(func() { w.Must("stop the node", w.node.Stop(time.Minute)) })
}

func (w *world) agentLog() string { return filepath.Join(w.Dir, "agent.log") }

// keepLogs copies the logs to dir, unless that is empty.
func (w *world) keepLogs(dir string) error {
	text, err := os.ReadFile(w.agentLog())
	return errors.Join(err, labenv.KeepLogs(dir, map[string][]byte{
		"agent.log": text, "containerd.log": []byte(w.daemon.Log(1_000_000)), "control-plane.log": []byte(w.control.Log(100_000)),
	}))
}
