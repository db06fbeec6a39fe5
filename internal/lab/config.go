package lab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// layout describes the files of a daemon. All of them are below dir, so that processes
// and mounts of the daemon are identified by a path below dir.
type layout struct {
	dir     string // absolute, short: sockets below it must fit 108 bytes
	bridge  string // the name of the link and of the CNI network
	subnet  string // of the bridge, such as 10.231.28.0/22
	cniBin  string // the network plugins
	metrics string // the address of the metrics; empty: none are served
}

func (l layout) socket() string     { return filepath.Join(l.dir, "containerd.sock") }
func (l layout) root() string       { return filepath.Join(l.dir, "root") }
func (l layout) state() string      { return filepath.Join(l.dir, "state") }
func (l layout) cniConf() string    { return filepath.Join(l.dir, "cni") }
func (l layout) hosts() string      { return filepath.Join(l.dir, "hosts") }
func (l layout) configFile() string { return filepath.Join(l.dir, "config.toml") }
func (l layout) bridgeFile() string { return filepath.Join(l.dir, "bridge") }
func (l layout) logFile() string    { return filepath.Join(l.dir, "containerd.log") }

// config returns containerd's configuration for a version such as "1.6.20".
// Root, state and socket are not in it: they are flags, which are the same in all
// versions.
//
// It sets restrict_oom_score_adj, because otherwise a sandbox cannot start without
// CAP_SYS_RESOURCE; a private runc root and directory of network namespaces, because
// the defaults are shared with every other containerd of the machine; and it disables
// NRI, whose socket is shared too.
func (l layout) config(version string) (string, error) {
	major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
	if err != nil {
		return "", fmt.Errorf("lab: containerd version %q: no number in front", version)
	}
	if major < 2 {
		return fmt.Sprintf(`version = 2
[metrics]
  address = %[6]q
[plugins."io.containerd.internal.v1.opt"]
  path = %[1]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[2]q
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = %[7]q
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %[3]q
  conf_dir = %[4]q
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  Root = %[5]q
  SystemdCgroup = %[8]t
`, filepath.Join(l.dir, "opt"), Pause, l.cniBin, l.cniConf(), filepath.Join(l.dir, "runc"), l.metrics, l.hosts(), CgroupDriver() == "systemd"), nil
	}
	return fmt.Sprintf(`version = 3
imports = []
[metrics]
  address = %[7]q
[plugins.'io.containerd.internal.v1.opt']
  path = %[1]q
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %[2]q
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = %[6]q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [%[3]q]
  conf_dir = %[4]q
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  Root = %[5]q
  SystemdCgroup = %[8]t
`, filepath.Join(l.dir, "opt"), Pause, l.cniBin, l.cniConf(), filepath.Join(l.dir, "runc"), l.hosts(), l.metrics, CgroupDriver() == "systemd"), nil
}

// CgroupDriver returns the driver of containers' cgroups, "cgroupfs" or "systemd": that of KUBEPARTS_CGROUP_DRIVER, or
// cgroupfs.
func CgroupDriver() string { return cmp.Or(os.Getenv("KUBEPARTS_CGROUP_DRIVER"), "cgroupfs") }

// mirror configures a registry as mirror of other registries.
func (l layout) mirror(url string, hosts []string) error {
	for _, host := range hosts {
		dir := filepath.Join(l.hosts(), host)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		// As server as well, for images that it has not got.
		text := fmt.Sprintf("server = %[1]q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", url)
		if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// conflist returns the configuration of the CNI network: a bridge that the host is
// connected to, so that tests reach pods at their own addresses and host ports. There is
// no masquerading: pods cannot reach other machines.
func (l layout) conflist() ([]byte, error) {
	return json.MarshalIndent(object{
		"cniVersion": "0.4.0",
		"name":       l.bridge,
		"plugins": []object{
			{
				"type":        "bridge",
				"bridge":      l.bridge,
				"isGateway":   true,
				"hairpinMode": true,
				"ipam": object{
					"type":    "host-local",
					"dataDir": filepath.Join(l.dir, "ipam"),
					"ranges":  [][]object{{{"subnet": l.subnet}}},
					"routes":  []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
}
