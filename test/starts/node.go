//go:build unix

package starts

import (
	"context"
	"encoding/json"
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
	config, err := json.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": "127.0.0.1", "port": 10250, "healthzPort": 0, "containerRuntimeEndpoint": c.machine.endpoint(),
		// A runtime in memory executes nothing: there are no cgroups, and nothing is evicted.
		"cgroupsPerQOS": false, "enforceNodeAllocatable": []string{}, "cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false,
		"evictionHard":                map[string]string{"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"podLogsDir": path("logs"), "resolvConf": path("resolv.conf"), "maxPods": 2000, "oomScoreAdj": 0,
		"authentication":         map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":          map[string]any{"mode": "AlwaysAllow"},
		"makeIPTablesUtilChains": false,
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
