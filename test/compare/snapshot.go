//go:build unix

package compare

import (
	"encoding/json"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/test/internal/criproxy"
)

// The kinds of node agents that are compared.
const (
	kindKubelet = "kubelet"
	kindAgent   = "agent"
)

// Kinds returns the kinds in the order of their runs.
func Kinds() []string { return []string{kindKubelet, kindAgent} }

// A snapshot is what was observed of a run, as it was observed.
type snapshot struct {
	Kind       string
	Version    string // that the agent reported in its Node
	Containerd string

	Calls  []criproxy.Call
	Pods   map[string]*podRecord // by name
	Events []v1.Event
	Node   *v1.Node

	// Cgroups are the settings of the cgroups above those of pods, by the batch that ran and the path. They are
	// those of cgroup v2 only.
	Cgroups map[string]map[string]string

	// Paths are the directories and addresses that differ between runs, with the names
	// that replace them.
	Paths map[string]string
}

// A podRecord is what was observed of a pod.
type podRecord struct {
	Static bool

	// History are the versions of the pod in the API server, in order. Settled is the
	// number of versions when the pod did not change any longer, before it was deleted.
	History []v1.Pod
	Settled int

	// Containers are the settled pod's running containers.
	Containers map[string]containerRecord

	// Cgroups are files of the cgroups, by paths below the node's cgroup.
	Cgroups map[string]string

	// Files describes the pod's directory, Logs that of its logs and links to them.
	Files, Logs map[string]string
}

// A containerRecord is what was observed of a running container.
type containerRecord struct {
	Files map[string]string // its /etc/hosts, /etc/resolv.conf and /etc/hostname
}

func (s *snapshot) save(file string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

func load(file string) (*snapshot, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := new(snapshot)
	return s, json.Unmarshal(data, s)
}
