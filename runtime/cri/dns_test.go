package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// show returns a configuration as it would be written: servers / searches /
// options.
func show(c *runtimeapi.DNSConfig) string {
	return strings.Join([]string{strings.Join(c.Servers, " "), strings.Join(c.Searches, " "), strings.Join(c.Options, " ")}, " / ")
}

func TestDNSOfPods(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(file, []byte("# mine\nnameserver 192.0.2.53\nsearch old.example\nsearch corp.example. .\noptions timeout:2 rotate\n"), 0o644))
	cluster := DNS{ResolvConf: file, ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local"}
	const fromHost = "192.0.2.53 / corp.example / timeout:2 rotate"
	const fromCluster = "10.96.0.10 / ns.svc.cluster.local svc.cluster.local cluster.local corp.example / ndots:5"
	for _, tc := range []struct {
		name string
		dns  DNS
		spec v1.PodSpec
		want string
	}{
		{"default dn-1", cluster, v1.PodSpec{DNSPolicy: v1.DNSDefault}, fromHost},
		{"cluster first dn-2", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, fromCluster},
		{"unknown is cluster first", cluster, v1.PodSpec{DNSPolicy: "Other"}, fromCluster},
		{"of the host's network", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, fromHost},
		{"with host net", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet, HostNetwork: true}, fromCluster},
		{"no cluster dn-3", DNS{ResolvConf: file}, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, fromHost},
		{"none", cluster, v1.PodSpec{DNSPolicy: v1.DNSNone}, " /  / "},
		{"no file", DNS{ResolvConf: file + ".none"}, v1.PodSpec{}, " /  / "},
		{"added to dn-6", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, DNSConfig: &v1.PodDNSConfig{
			Nameservers: []string{"1.1.1.1", "10.96.0.10"}, Searches: []string{"corp.example", "x.example"},
			Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("1")}, {Name: "edns0"}},
		}}, "10.96.0.10 1.1.1.1 / ns.svc.cluster.local svc.cluster.local cluster.local corp.example x.example / ndots:1 edns0"},
		{"too many servers dn-7", cluster, v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{
			Nameservers: []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"},
		}}, "1.1.1.1 1.1.1.2 1.1.1.3 /  / "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := &v1.Pod{Spec: tc.spec}
			pod.Namespace = "ns"
			got, err := tc.dns.For(pod)
			require.NoError(t, err)
			assert.Equal(t, tc.want, show(got))
		})
	}
}

func TestSearchLinesAreCut(t *testing.T) {
	var many, long []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("s%d", i))
		long = append(long, fmt.Sprintf("%s%d", strings.Repeat("a", 198), i+10))
	}
	for _, searches := range [][]string{many, long} { // dn-7, dn-8
		got, err := DNS{}.For(&v1.Pod{Spec: v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Searches: searches}}})
		require.NoError(t, err)
		assert.LessOrEqual(t, len(got.Searches), 32)
		assert.LessOrEqual(t, len(strings.Join(got.Searches, " ")), 2048)
		assert.Equal(t, searches[:len(got.Searches)], got.Searches)
	}
}

func FuzzParseResolvConf(f *testing.F) {
	f.Add("nameserver 1.1.1.1\nsearch a b.\noptions ndots:5\n")
	f.Add("nameserver\n;x\nsearch\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseResolvConf(text)
		if err == nil && c == nil {
			t.Fatal("neither a configuration nor an error")
		}
	})
}
