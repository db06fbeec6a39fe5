//go:build unix

package starts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// startNode starts a kubelet or the complete node, and waits until it is ready.
func startNode(ctx context.Context, t testing.TB, binary, dir string, c *cluster) (*labenv.Process, error) {
	address, err := labenv.OwnAddress()
	if err != nil {
		return nil, err
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	config, err := labenv.KubeletConfig(map[string]any{
		"port": 10250, "healthzPort": 0, "containerRuntimeEndpoint": c.machine.endpoint(),
		"cgroupsPerQOS": false, "enforceNodeAllocatable": []string{}, // a runtime in memory executes nothing: there are no cgroups
		"podLogsDir": path("logs"), "resolvConf": path("resolv.conf"), "maxPods": 2000, "oomScoreAdj": 0,
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		os.WriteFile(path("resolv.conf"), []byte("nameserver 192.0.2.53\n"), 0o644),
		os.WriteFile(path("config.json"), config, 0o644),
	); err != nil {
		return nil, err
	}
	node, err := labenv.Start(binary, []string{
		"--config=" + path("config.json"), "--kubeconfig=" + c.kubeconfig, "--root-dir=" + path("root"), "--cert-dir=" + path("pki"),
		"--hostname-override=" + nodeName, "--node-ip=" + address,
	}, path("node.log"))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = node.Kill() }) // its pods are in the memory of this process
	return node, node.UntilReady(ctx, c.client, nodeName)
}
