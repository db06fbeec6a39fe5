package cri_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestTheNodesResolvConfIsRead(t *testing.T) { // dn-5
	dir := t.TempDir()
	write := func(name, text string) cri.DNS {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return cri.DNS{ResolvConf: path}
	}
	conf, err := cri.ReadResolvConf(write("good", "nameserver 192.0.2.53\n"))
	require.NoError(t, err)
	assert.Equal(t, podconfig.ResolvConf{Servers: []string{"192.0.2.53"}}, conf)
	_, err = cri.ReadResolvConf(write("bad", "nameserver\n"))
	assert.ErrorContains(t, err, "bad: line 1: nameserver without an address")
	_, err = cri.ReadResolvConf(write("large", strings.Repeat("#", podconfig.MaxResolvConf+1)))
	assert.ErrorContains(t, err, "large: more than 10485760 bytes")
	_, err = cri.ReadResolvConf(cri.DNS{ResolvConf: filepath.Join(dir, "none")})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	conf, err = cri.ReadResolvConf(cri.DNS{NoResolvConf: true}) // dn-4
	require.NoError(t, err)
	assert.Zero(t, conf)
}

func TestASandboxReportsItsDNS(t *testing.T) { // dn-1, dn-3, dn-7
	const missing = `kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`
	f := newFake()
	f.has("img:latest")
	rt, seen := f.engine(t, cri.Config{Node: cri.Node{DNS: cri.DNS{ClusterDomain: "cluster.local", ResolvConf: os.DevNull}}})
	pod := podOf(v1.Container{Name: "a", Image: "img:latest", ImagePullPolicy: v1.PullIfNotPresent})
	pod.Spec.NodeName, pod.Spec.DNSPolicy = "n1", v1.DNSClusterFirst
	pod.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"}}
	reported := func() []string {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		var lines []string
		for _, ev := range seen.list {
			if strings.Contains(ev.Reason, "DNS") {
				lines = append(lines, ev.Type+" "+ev.Object.Kind+"/"+ev.Object.Name+" "+ev.Reason+": "+ev.Message)
			}
		}
		seen.list = nil
		return lines
	}
	servers := []string{"1.1.1.1", "1.1.1.2", "1.1.1.3"}
	if runtime.KubernetesMinor >= 38 { // the node has no name server
		servers = []string{"127.0.0.1", "1.1.1.1", "1.1.1.2"}
	}
	syncs(t, rt, pod)
	assert.Equal(t, []string{
		"Warning Node/n1 MissingClusterDNS: " + missing,
		`Warning Pod/web MissingClusterDNS: pod: "web_prod(u-1)". ` + missing,
		"Warning Pod/web DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: " + strings.Join(servers, " "),
	}, reported())
	assert.Equal(t, servers, f.sandboxes()[0].Config.DnsConfig.Servers)
	f.exits("a", 1)
	syncs(t, rt, pod)
	assert.Empty(t, reported(), "reported once per sandbox")
}

func TestASandboxThatCannotHaveItsNameIsNotMade(t *testing.T) { // pe-18, pe-19, dn-6
	for want, spec := range map[string]func(*v1.PodSpec){
		"spec.hostname":              func(s *v1.PodSpec) { s.Hostname = "a.b" },
		"failed to construct FQDN":   func(s *v1.PodSpec) { s.Subdomain, s.SetHostnameAsFQDN = strings.Repeat("s", 63), new(true) },
		"spec.dnsConfig.searches[0]": func(s *v1.PodSpec) { s.DNSConfig = &v1.PodDNSConfig{Searches: []string{"a\nnameserver 6.6.6.6"}} },
	} {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{Node: cri.Node{DNS: cri.DNS{ClusterDomain: "cluster.local", ResolvConf: os.DevNull}}})
		pod := podOf(v1.Container{Name: "a", Image: "img"})
		spec(&pod.Spec)
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		assert.ErrorContains(t, err, want)
		assert.Empty(t, f.sandboxes())
	}
}

// A pod that runs without the name servers of the node would fail later, for a reason that its
// status does not show.
func TestWithoutTheNamedResolvConfThereIsNoSandbox(t *testing.T) { // dn-4
	f := newFake()
	rt, _ := f.engine(t, cri.Config{Node: cri.Node{DNS: cri.DNS{ResolvConf: filepath.Join(t.TempDir(), "none")}}})
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(v1.Container{Name: "a", Image: "img"})})
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Empty(t, f.sandboxes())
}

func TestNewRefusesDNSThatNoFileCanHold(t *testing.T) {
	f := newFake()
	_, err := cri.New(cri.Config{Runtime: f, Images: f, Name: "fake", Node: cri.Node{DNS: cri.DNS{ClusterDNS: []string{"1 2"}}}})
	assert.EqualError(t, err, `cri: Config.Node.DNS: ClusterDNS: invalid address "1 2"`)
}
