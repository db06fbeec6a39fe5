package podconfig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestHostsFiles(t *testing.T) {
	const head = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	aliases := []v1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"db", "db.example"}}, {IP: "fd00::9", Hostnames: []string{"x_y"}}}
	const tail = "\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example\nfd00::9\tx_y\n"
	for _, tc := range []struct {
		name string
		spec v1.PodSpec
		want string
	}{
		{"pe-15 addresses", v1.PodSpec{}, head + "10.0.0.7\tweb\nfd00::7\tweb\n"},
		{"pe-15 with a domain", v1.PodSpec{Subdomain: "s"}, head + "10.0.0.7\tweb.s.ns.svc.c\tweb\nfd00::7\tweb.s.ns.svc.c\tweb\n"},
		{"pe-15 another hostname", v1.PodSpec{Hostname: "front"}, head + "10.0.0.7\tfront\nfd00::7\tfront\n"},
		{"pe-15 an override", v1.PodSpec{Hostname: "front", Subdomain: "s", HostnameOverride: new("a.example")}, head + "10.0.0.7\ta.example\nfd00::7\ta.example\n"},
		{"pe-16 aliases", v1.PodSpec{HostAliases: aliases}, head + "10.0.0.7\tweb\nfd00::7\tweb\n" + tail},
		{"pe-17 the host's", v1.PodSpec{HostNetwork: true}, "# Kubernetes-managed hosts file (host network).\nTHE HOST'S\n"},
		{"pe-17 the host's, with aliases", v1.PodSpec{HostNetwork: true, HostAliases: aliases}, "# Kubernetes-managed hosts file (host network).\nTHE HOST'S\n" + tail},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podconfig.HostsFile(dnsPod(tc.spec), []string{"10.0.0.7", "fd00::7"}, "c", "THE HOST'S\n")
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestPodsThatHaveAHostsFile(t *testing.T) { // pe-14
	mounted := func(path string) *v1.Container {
		return &v1.Container{VolumeMounts: []v1.VolumeMount{{MountPath: path}}}
	}
	ips := []string{"10.0.0.7"}
	for _, tc := range []struct {
		name string
		spec v1.PodSpec
		c    *v1.Container
		ips  []string
		want bool
	}{
		{"pe-14 a pod with addresses", v1.PodSpec{}, &v1.Container{}, ips, true},
		{"pe-14 none yet", v1.PodSpec{}, &v1.Container{}, nil, false},
		{"pe-14 the host's network", v1.PodSpec{HostNetwork: true}, &v1.Container{}, nil, true},
		{"pe-14 a volume at its path", v1.PodSpec{HostNetwork: true}, mounted("/etc/hosts"), ips, false},
		{"pe-14 exactly there", v1.PodSpec{}, mounted("/etc/hosts/"), ips, true},
		{"pe-14 around it", v1.PodSpec{}, mounted("/etc"), ips, true},
	} {
		assert.Equal(t, tc.want, podconfig.NeedsHostsFile(dnsPod(tc.spec), tc.c, tc.ips), tc.name)
	}
}

func TestValuesWithLineBreaksAreRejectedInHostsFiles(t *testing.T) {
	alias := func(ip string, names ...string) v1.PodSpec {
		return v1.PodSpec{HostAliases: []v1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"ok"}}, {IP: ip, Hostnames: names}}}
	}
	for _, tc := range []struct {
		want string
		spec v1.PodSpec
		ip   string
	}{
		{`spec.hostAliases[1].ip: invalid IP address "db"`, alias("db", "x"), "10.0.0.7"},
		{`spec.hostAliases[1].ip: invalid IP address ""`, alias("", "x"), "10.0.0.7"},
		{`spec.hostAliases[1].ip: invalid IP address "fe80::1%\n6.6.6.6 bank"`, alias("fe80::1%\n6.6.6.6 bank", "x"), "10.0.0.7"},
		{`spec.hostAliases[1].hostnames[1]: invalid hostname "b\n6.6.6.6 bank"`, alias("192.0.2.2", "a", "b\n6.6.6.6 bank"), "10.0.0.7"},
		{`spec.hostAliases[1].hostnames[0]: invalid hostname "a b"`, alias("192.0.2.2", "a b"), "10.0.0.7"},
		{`spec.hostAliases[1].hostnames[0]: invalid hostname "a#b"`, alias("192.0.2.2", "a#b"), "10.0.0.7"},
		{`spec.hostAliases[1].hostnames[0]: invalid hostname ""`, alias("192.0.2.2", ""), "10.0.0.7"},
		{`invalid pod IP "10.0.0.7\n6.6.6.6"`, v1.PodSpec{}, "10.0.0.7\n6.6.6.6"},
		{`spec.hostname: pod Hostname "a\nb" is not a valid DNS label`, v1.PodSpec{Hostname: "a\nb"}, "10.0.0.7"},
	} {
		_, err := podconfig.HostsFile(dnsPod(tc.spec), []string{tc.ip}, "c", "")
		assert.ErrorContains(t, err, tc.want)
	}
}
