//go:build unix

package footprint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	cri "k8s.io/cri-client/pkg"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

const nodeName = "footprint"

// patience is the limit of what a node has to do, on a slow machine.
const patience = 10 * time.Minute

// A world is what one measurement runs on: an empty containerd and, with --cluster, an empty API
// server.
type world struct {
	*labenv.Env

	started string // see startedDir
	daemon  *lab.Daemon
	control *lab.ControlPlane    // nil without a cluster
	api     kubernetes.Interface // as cluster administrator
	audit   string               // the audit log
}

func newWorld(t testing.TB, cluster bool) *world {
	needs := []string{"containerd"}
	if cluster {
		needs = append(needs, "kubernetes")
	}
	w := &world{Env: labenv.New(t, "", needs...)}
	w.started = w.Path("started")
	for _, dir := range []string{"started", "manifests", "logs", "root", "plugins", "audit"} {
		w.Must("make a directory", os.Mkdir(w.Path(dir), 0o755))
	}
	w.MakeCgroup()
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Metrics: true})
	t.Cleanup(w.removePods) // before that of the daemon, and after the node has stopped
	if !cluster {
		return w
	}
	policy := w.Path("policy.yaml")
	w.Must("write a policy", os.WriteFile(policy, []byte(auditPolicy), 0o600))
	w.audit = w.Path("audit", "log")
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true, APIServer: []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + w.audit,
	}})
	w.api, _ = w.Client(w.control.Kubeconfig)
	return w
}

// removePods removes all pods from the runtime, several at a time: the lab's own cleanup, which has
// a time limit, then has nothing left to do.
func (w *world) removePods() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), patience)
	defer cancel()
	rt, err := cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(w.daemon.Endpoint).WithConnectionTimeout(time.Minute).Build(ctx)
	if err != nil {
		w.Logf("remove pods: %v", err)
		return
	}
	defer rt.Close(ctx)
	sandboxes, err := rt.ListPodSandbox(ctx, nil)
	if err != nil {
		w.Logf("remove pods: %v", err)
		return
	}
	var group errgroup.Group
	group.SetLimit(8)
	for _, s := range sandboxes {
		group.Go(func() error { return errors.Join(rt.StopPodSandbox(ctx, s.Id), rt.RemovePodSandbox(ctx, s.Id)) })
	}
	if err := group.Wait(); err != nil {
		w.Logf("remove pods: %v", err)
	}
}

// putPods gives the node its pods, before it starts.
func (w *world) putPods(ctx context.Context, n int) error {
	if w.control == nil {
		return writeManifests(w.Path("manifests"), w.started, n)
	}
	return createPods(ctx, w.api, nodeName, w.started, n)
}

// A sample contains the counters at one time.
type sample struct {
	at            time.Time
	cpu, daemon   time.Duration // of the program and of containerd
	cri           criCount
	api           int64
	pid, daemonID int
}

// sample reads the counters; pid is 0 before the program has started.
func (w *world) sample(ctx context.Context, pid int) (s sample, err error) {
	s = sample{at: time.Now(), pid: pid, daemonID: w.daemon.PID()}
	if pid != 0 {
		if s.cpu, err = labenv.CPUTime(pid); err != nil {
			return s, err
		}
	}
	if s.daemon, err = labenv.CPUTime(s.daemonID); err != nil {
		return s, err
	}
	families, err := scrape(ctx, w.daemon.Metrics)
	if err != nil {
		return s, fmt.Errorf("metrics of containerd: %w", err)
	}
	if s.cri = criCalls(families); s.cri.all == 0 {
		return s, errors.New("metrics of containerd: no CRI calls")
	}
	if w.control != nil {
		s.api, err = apiCalls(w.audit)
	}
	return s, err
}
