package cri

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
)

func TestHostsFiles(t *testing.T) {
	const head = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	aliases := []v1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"db", "db.example"}}}
	const tail = "\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example\n"
	ips := []string{"10.0.0.7", "fd00::7"}
	for _, tc := range []struct {
		name   string
		spec   v1.PodSpec
		domain string
		want   string
	}{
		{"pe-15", v1.PodSpec{}, "", head + "10.0.0.7\tweb\nfd00::7\tweb\n"},
		{"with a domain", v1.PodSpec{}, "s.ns.svc.c", head + "10.0.0.7\tweb.s.ns.svc.c\tweb\nfd00::7\tweb.s.ns.svc.c\tweb\n"},
		{"aliases pe-16", v1.PodSpec{HostAliases: aliases}, "", head + "10.0.0.7\tweb\nfd00::7\tweb\n" + tail},
		{"of the host pe-17", v1.PodSpec{HostNetwork: true, HostAliases: aliases}, "", "# Kubernetes-managed hosts file (host network).\nTHE HOST'S\n" + tail},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, hostsFile(&v1.Pod{Spec: tc.spec}, ips, "web", tc.domain, "THE HOST'S\n"))
		})
	}
}

func TestHostnames(t *testing.T) {
	for _, tc := range []struct { // pe-18
		name, pod             string
		spec                  v1.PodSpec
		host, domain, failure string
	}{
		{"the pod's name", "web", v1.PodSpec{}, "web", "", ""},
		{"the spec's", "web", v1.PodSpec{Hostname: "front"}, "front", "", ""},
		{"a subdomain", "web", v1.PodSpec{Subdomain: "shops"}, "web", "shops.ns.svc.c.local", ""},
		{"an override", "web", v1.PodSpec{Subdomain: "shops", HostnameOverride: new("x.example")}, "x.example", "", ""},
		{"too long", strings.Repeat("a", 62) + "-.b", v1.PodSpec{}, strings.Repeat("a", 62), "", ""},
		{"no label", "web", v1.PodSpec{Hostname: "a.b"}, "", "", "not a valid DNS label"},
		{"nothing left", strings.Repeat("-", 70), v1.PodSpec{}, "", "", "no valid part"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := &v1.Pod{Spec: tc.spec}
			pod.Name, pod.Namespace = tc.pod, "ns"
			host, domain, err := hostnameOf(pod, "c.local")
			if tc.failure != "" {
				assert.ErrorContains(t, err, tc.failure)
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, tc.host+"/"+tc.domain, host+"/"+domain)
		})
	}
}

func TestADomainOfNoClusterEndsInNoDot(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Subdomain: "shops"}}
	pod.Namespace = "ns"
	_, domain, err := hostnameOf(pod, "")
	assert.NoError(t, err)
	assert.Equal(t, "shops.ns.svc", domain)
}
