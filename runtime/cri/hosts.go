package cri

import (
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// writeHosts writes the pod's /etc/hosts and returns its path on this machine
// (pe-14). What the other containers of the pod have mounted is not touched if it
// is what it should be: to write is to empty it first, and a disk that is full
// would leave it so.
func (r *Runtime) writeHosts(pod *v1.Pod, ips []string) (string, error) {
	var of []byte
	if pod.Spec.HostNetwork {
		var err error
		if of, err = os.ReadFile("/etc/hosts"); err != nil && !os.IsNotExist(err) {
			return "", err
		}
	}
	content, err := podconfig.Hosts(pod, ips, r.cfg.DNS.ClusterDomain, string(of))
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.podDir(pod), "etc-hosts")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	if there, err := os.ReadFile(path); err != nil || string(there) != content {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	return path, os.Chmod(path, 0o644) // whatever the umask
}

// podDir is the directory of a pod's files (sl-33).
func (r *Runtime) podDir(pod *v1.Pod) string {
	return filepath.Join(r.cfg.RootDir, "pods", string(pod.UID))
}
