package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
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
	*labenv.Env
	ctx context.Context

	daemon  *lab.Daemon
	control *lab.ControlPlane
	socket  *proxy
	agent   *agentKeeper
	checker *checker

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

func newWorld(t testing.TB, o options, j *checker, say func(string, ...any)) *world {
	w := &world{Env: labenv.New(t, o.containerd, "containerd", "kubernetes"), ctx: t.Context(), checker: j, later: map[string][]time.Duration{}}
	say("building the agent; starting containerd (%s) and a control plane (Kubernetes %s) of the run's own", o.containerd, lab.KubernetesVersion)
	binary := w.Path("agent")
	built := w.BuildNode(binary)
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Binary: o.containerd, RootMiB: containerdDisk})
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{})
	w.connect()

	built()
	var err error
	w.socket, err = newProxy(w.Path("cri.sock"), w.daemon.Endpoint[len("unix://"):])
	w.Must("make a socket", err)
	t.Cleanup(func() { w.Must("close the socket", w.socket.close()) })
	w.Must("make a directory", os.Mkdir(w.root(), 0o755))
	w.Must("make a file system for the agent", smallDisk(w.root(), agentDisk))
	t.Cleanup(func() { w.Must("clean up", unmountAll(w.root())) })
	t.Cleanup(func() { w.Must("remove cgroups", removeGroups(w.Cgroup())) })
	ports, err := labenv.FreePorts(1)
	w.Must("find a port", err)
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	w.agent = &agentKeeper{checker: j, agent: agent{
		binary: binary, addr: addr, log: w.agentLog(), record: o.record,
		args: []string{
			"--container-runtime-endpoint=unix://" + w.socket.path, "--root-dir=" + w.root(), "--pod-logs-dir=" + w.logs(), "--hostname-override=" + nodeName,
			"--kubeconfig=" + w.Path("kubeconfig"), "--bootstrap-kubeconfig=" + w.control.BootstrapKubeconfig(),
			"--listen=" + addr, "--healthz-port=-1", "--cgroup-root=" + w.Cgroup(), "--remember-pods", "--v=4",
		},
	}}
	w.Must("prepare profiles", w.profile(o.profile))
	t.Cleanup(func() { w.Must("keep the logs", w.keepLogs(o.logs)) })
	t.Cleanup(func() { w.Must("end the agent", w.agent.end()) })
	w.agent.begin(w.ctx)
	return w
}

// quietly returns a context with which the CRI's client does not log failed calls to stderr.
func (w *world) quietly(ctx context.Context) context.Context {
	return logs.Context(ctx, slog.New(slog.DiscardHandler))
}

func (w *world) root() string     { return w.Path("root") }
func (w *world) logs() string     { return w.Path("logs") }
func (w *world) agentLog() string { return w.Path("agent.log") }

// keepLogs copies the logs to dir, unless that is empty.
func (w *world) keepLogs(dir string) error {
	text, err := os.ReadFile(w.agentLog())
	return errors.Join(err, labenv.KeepLogs(dir, map[string][]byte{"agent.log": text, "containerd.log": []byte(w.daemon.Log(1_000_000))}))
}

// connect creates the clients.
func (w *world) connect() {
	w.api, _ = w.Client(w.control.Kubeconfig)
	var err error
	w.cri, err = w.dial(w.ctx)
	w.Must("connect to containerd", err)
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
	return labenv.Until(ctx, "wait for the cluster", 2*time.Minute, func() error {
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
	return labenv.NodeReady(ctx, w.api, nodeName)
}
