//go:build unix

package starts

import (
	"errors"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/criproxy"
)

// A realMachine is a containerd behind a proxy, which records the calls.
type realMachine struct {
	socket string
	proxy  *criproxy.Proxy
}

func newRealMachine(t testing.TB, dir string) (*realMachine, error) {
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	listen := filepath.Join(dir, "cri.sock")
	proxy, err := criproxy.New(criproxy.Config{
		Listen: listen, Upstream: daemon.Endpoint, MaxCalls: 1_000_000,
		Responses: func(method string) bool { return method == "RunPodSandbox" || method == "CreateContainer" },
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = proxy.Close() })
	return &realMachine{"unix://" + listen, proxy}, nil
}

func (m *realMachine) endpoint() string { return m.socket }

func (m *realMachine) container() v1.Container {
	return v1.Container{Name: "main", Image: lab.Busybox, Command: []string{"sleep", "1000000"}}
}

func (m *realMachine) count() int { return len(m.proxy.Calls()) + m.proxy.Dropped() }

func (m *realMachine) callsOf() (map[types.UID][]call, error) {
	pods, owner := map[types.UID][]call{}, map[string]types.UID{}
	for _, c := range m.proxy.Calls() {
		var pod types.UID
		switch c.Method {
		case "RunPodSandbox":
			pod = types.UID(text(c.Request, "config", "metadata", "uid"))
			owner[text(c.Response, "pod_sandbox_id")] = pod
		case "PodSandboxStatus":
			pod = owner[text(c.Request, "pod_sandbox_id")]
		case "CreateContainer":
			pod = owner[text(c.Request, "pod_sandbox_id")]
			owner[text(c.Response, "container_id")] = pod
		case "StartContainer":
			pod = owner[text(c.Request, "container_id")]
		default:
			continue
		}
		pods[pod] = append(pods[pod], call{c.Method, c.Began, c.Began.Add(c.Took)})
	}
	if m.proxy.Dropped() > 0 {
		return nil, errors.New("the record of calls is full")
	}
	return pods, nil
}

// text returns a string of a decoded message by its path; empty if there is none.
func text(message any, path ...string) string {
	for _, key := range path {
		fields, _ := message.(map[string]any)
		message = fields[key]
	}
	s, _ := message.(string)
	return s
}
