//go:build linux

package kubeadm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
	emulated "github.com/kubeparts/kubeparts/test/internal/machine"
)

// containerdService is the unit of Debian's package, with the program of the lab.
const containerdService = `[Service]
Type=notify
ExecStart=/programs/containerd/containerd
Delegate=yes
KillMode=process
OOMScoreAdjust=-999
[Install]
WantedBy=multi-user.target
`

const systemdContainerdConfig = containerdConfig + `[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
`

// systemdClusterConfig has nothing that differs from the defaults but names and addresses.
const systemdClusterConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.2.15}
nodeRegistration: {name: modern, taints: []}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ` + lab.KubernetesVersion + `
networking: {podSubnet: 10.244.0.0/16}
`

// TestIntegrationKubeadmOnSystemd makes a cluster on an emulated machine with systemd as the first process and cgroup
// v2: the kubelet is a service there, which kubeadm starts and stops.
func TestIntegrationKubeadmOnSystemd(t *testing.T) {
	lab.Need(t, "root", "containerd", "kubernetes", "iptables", "qemu")
	dir := t.TempDir()
	job, programs, results := filepath.Join(dir, "job"), filepath.Join(dir, "programs"), filepath.Join(dir, "results")
	for _, d := range []string{filepath.Join(job, "images"), results} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	kubernetes, err := labenv.Cached("kubernetes-" + lab.KubernetesVersion)
	require.NoError(t, err)
	require.NoError(t, emulated.Stage(kubernetes, filepath.Join(programs, "kubernetes"), []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubeadm", "kubectl"}))
	require.NoError(t, emulated.StageContainerd(filepath.Join(programs, "containerd")))
	put := func(from, name string) { require.NoError(t, emulated.Link(from, filepath.Join(job, name))) }
	for _, archive := range archives(t) {
		put(archive, filepath.Join("images", filepath.Base(archive)))
	}
	node := os.Getenv("KUBEPARTS_KUBELET")
	require.NotEmpty(t, node, "the complete node")
	put(node, "kubelet")
	for _, name := range []string{"kubelet.service", "10-kubeadm.conf"} {
		put(filepath.Join("../../examples/kubelet", name), name)
	}
	script, err := os.ReadFile("testdata/systemd.sh")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"run": strings.ReplaceAll(string(script), "KUBERNETES", kubernetesImage), "tags": strings.Join(tags(), "\n") + "\n", "init.yaml": systemdClusterConfig,
		"containerd.toml": systemdContainerdConfig, "containerd.service": containerdService, "10-lab.conflist": fmt.Sprintf(conflist, "10.244.0.0/24"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(job, name), []byte(text), 0o644))
	}

	cache, err := labenv.Cached("modern")
	require.NoError(t, err)
	code, err := emulated.Run(t.Context(), emulated.Config{
		Systemd: true, CPUs: 1, MemoryMiB: 4096, NUMANodes: 1, VirtualTime: true, // all time limits are met
		Cache: cache, Dir: dir, Programs: programs, Job: job, Out: t.Output(), Say: t.Logf,
	}, results)
	require.NoError(t, err)
	require.Zero(t, code)
}
