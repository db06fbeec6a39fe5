package cri_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// namespacesOnContainerd checks which namespaces containers share with the host and
// with each other (rt-22), and the sysctls of those that they do not share.
func namespacesOnContainerd(t *testing.T, s *sharedEngine) {
	kinds := []string{"net", "pid", "ipc"}
	host := map[string]string{}
	for _, ns := range kinds {
		link, err := os.Readlink("/proc/self/ns/" + ns)
		require.NoError(t, err)
		host[ns] = link
	}
	for _, tc := range []struct {
		name   string
		change func(*v1.PodSpec)
		host   string // namespaces of the host
		shared string // namespaces that the pod's containers share
	}{
		{"of its own", func(*v1.PodSpec) {}, "", "net ipc"},
		{"hostNetwork", func(p *v1.PodSpec) { p.HostNetwork = true }, "net", "net ipc"},
		{"hostPID", func(p *v1.PodSpec) { p.HostPID = true }, "pid", "net pid ipc"},
		{"hostIPC", func(p *v1.PodSpec) { p.HostIPC = true }, "ipc", "net ipc"},
		{"shareProcessNamespace", func(p *v1.PodSpec) { p.ShareProcessNamespace = new(true) }, "", "net pid ipc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			look := "for n in net pid ipc; do readlink /proc/self/ns/$n; done; " + serves
			a := s.enginePod(t, script("web", look), script("log", look))
			a.pod.Spec.SecurityContext = nil // host namespaces alone are a reason to speak of them (rt-21)
			tc.change(&a.pod.Spec)
			a.runs()
			a.waitsForLine("web", "ipc:")
			a.waitsForLine("log", "ipc:")
			web, log := strings.Fields(a.log("web", 0)), strings.Fields(a.log("log", 0))
			require.Len(t, web, 3)
			require.Len(t, log, 3)
			for i, ns := range kinds {
				assert.Equal(t, strings.Contains(tc.host, ns), web[i] == host[ns], "the %s namespace of the host", ns)
				assert.Equal(t, strings.Contains(tc.shared, ns), web[i] == log[i], "shared %s namespace", ns)
			}
			if strings.Contains(tc.host, "net") {
				assert.Empty(t, a.status().IPs, "the node's addresses are not the pod's own")
				assert.True(t, a.status().Sandboxes[0].HostNetwork)
				a.sync(nil)
				assert.Len(t, a.status().Sandboxes, 1, "the sandbox is not replaced")
			}
		})
	}

	t.Run("sysctls rt-21", func(t *testing.T) {
		t.Parallel()
		const file = "/proc/sys/net/ipv4/ip_local_port_range"
		before := readFile(t, file)
		a := s.enginePod(t, script("web", "cat "+file+" /proc/sys/net/core/somaxconn"))
		a.pod.Spec.SecurityContext.Sysctls = []v1.Sysctl{
			{Name: "net.ipv4.ip_local_port_range", Value: "20000 30000"}, {Name: "net/core/somaxconn", Value: "777"},
		}
		a.ends()
		assert.Equal(t, "20000\t30000\n777\n", a.log("web", 0))
		assert.Equal(t, before, readFile(t, file), "the machine keeps its own")
	})

	t.Run("a sysctl that does not exist fails the sandbox", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		a.pod.Spec.SecurityContext.Sysctls = []v1.Sysctl{{Name: "net.ipv4.no_such_thing", Value: "1"}}
		failed := a.failsWith(a.pod.Name+"_prod", "CreatePodSandboxError")
		assert.Equal(t, runtime.CreatePodSandbox, failed.Kind)
		assert.Contains(t, failed.Message, "no_such_thing")
		assert.Empty(t, a.status().Containers)
	})
}
