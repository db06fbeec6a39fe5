//go:build unix

package footprint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A node is a running kubelet or agent. Both have the same flags and the same configuration.
type node struct {
	world *world
	name  string
	*labenv.Process
	began   time.Time
	metrics string // URL
}

// config returns the KubeletConfiguration: the defaults, but for what a private node requires.
func (w *world) config(ports []int) ([]byte, error) {
	c := map[string]any{
		"containerRuntimeEndpoint": w.daemon.Endpoint, "podLogsDir": w.Path("logs"), "volumePluginDir": w.Path("plugins"),
		"port": ports[0], "readOnlyPort": ports[1], "healthzPort": ports[2], "cgroupRoot": w.Cgroup(), "maxPods": 1100, "oomScoreAdj": 0,
	}
	if w.control == nil {
		c["staticPodPath"] = w.Path("manifests")
	}
	return labenv.KubeletConfig(c)
}

// start starts a kubelet or agent.
func (w *world) start(name, binary, logs string) (*node, error) {
	ports, err := labenv.FreePorts(3)
	if err != nil {
		return nil, err
	}
	config, err := w.config(ports)
	if err != nil {
		return nil, err
	}
	file := w.Path("config.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	args := []string{"--config=" + file, "--root-dir=" + w.Path("root"), "--cert-dir=" + w.Path("pki"), "--hostname-override=" + nodeName}
	if w.control != nil {
		args = append(args, "--kubeconfig="+w.control.NodeKubeconfig(nodeName))
	}
	if logs == "" {
		logs = w.Dir
	}
	log := filepath.Join(logs, name+".log")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier run
		return nil, err
	}
	n := &node{world: w, name: name, metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1]), began: time.Now()}
	n.Process, err = labenv.Start(binary, args, log)
	return n, err
}

// alive returns a context that is also done when the program exits, with the end of its log as
// the cause.
func (n *node) alive(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	ctx, exited := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-n.Exited:
			exited(fmt.Errorf("%s has exited; see its log (--logs)", n.name))
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// serves waits until the program serves its metrics.
func (n *node) serves(ctx context.Context) error {
	for {
		_, err := scrape(ctx, n.metrics)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// goroutines returns the number of goroutines of the program.
func (n *node) goroutines(ctx context.Context) (int, error) {
	families, err := scrape(ctx, n.metrics)
	if err != nil {
		return 0, err
	}
	m := families["go_goroutines"].GetMetric()
	if len(m) != 1 {
		return 0, fmt.Errorf("%s: no go_goroutines", n.metrics)
	}
	return int(m[0].GetGauge().GetValue()), nil
}
