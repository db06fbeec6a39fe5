package labenv

import (
	"encoding/json"
	"maps"
)

// KubeletConfig returns a KubeletConfiguration, in JSON, with fields and with what a node beside others requires on
// a machine with a full disk: it accepts cgroup v1 and swap, its server is private and allows all requests, it
// deletes no images, evicts no pods, and does not change rules of iptables.
func KubeletConfig(fields map[string]any) ([]byte, error) {
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "127.0.0.1",
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":  map[string]any{"mode": "AlwaysAllow"},
		"cgroupDriver":   "cgroupfs", "failCgroupV1": false, "failSwapOn": false, "makeIPTablesUtilChains": false,
		"evictionHard": map[string]string{
			"memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
	}
	maps.Copy(config, fields)
	return json.Marshal(config)
}
