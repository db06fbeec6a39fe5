package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// maxNodeHosts is the maximum size of the node's /etc/hosts for pods in the host network,
// in bytes. Block lists have several megabytes.
const maxNodeHosts = 16 << 20

// writeHosts writes the pod's hosts file and returns its host path. A file with the
// desired content is not written: running containers have it mounted, and a write would
// leave it empty on a full disk.
func (r *Runtime) writeHosts(pod *v1.Pod, ips []string) (string, error) {
	var ofNode []byte
	if pod.Spec.HostNetwork {
		var err error
		if ofNode, err = readNodeHosts("/etc/hosts"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	content, err := podconfig.HostsFile(pod, ips, r.cfg.Node.DNS.ClusterDomain, string(ofNode))
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.podDir(pod), hostsFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	if err := makeEqual(path, []byte(content)); err != nil {
		return "", fmt.Errorf("write the pod's hosts file: %w", err)
	}
	return path, os.Chmod(path, 0o644) // independent of the umask
}

func readNodeHosts(path string) ([]byte, error) {
	f, err := untrusted.OpenFollow(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return untrusted.Read(f, maxNodeHosts)
}

// makeEqual writes content to a file unless it is equal. It writes in place, because
// containers have the file mounted. A file that is not regular is replaced.
func makeEqual(path string, content []byte) error {
	same, err := untrusted.Equal(path, content)
	if same {
		return nil
	}
	if errors.Is(err, untrusted.ErrNotRegular) {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	f, err := untrusted.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Entries of a pod's directory that this package creates, in addition to checkpointFile.
const (
	hostsFile   = "etc-hosts"  // mounted into the pod's containers
	messagesDir = "containers" // the termination messages, a directory for each container
)

// podDir returns the directory of a pod's files.
func (r *Runtime) podDir(pod *v1.Pod) string {
	return filepath.Join(r.cfg.Dirs.Root, "pods", string(pod.UID))
}
