package cri_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// namesOnContainerd checks a pod's host name and its DNS configuration (sections
// 15 and 16).
func namesOnContainerd(t *testing.T, s *sharedEngine) {
	for _, tc := range []struct {
		name   string
		policy v1.DNSPolicy
		change func(*v1.PodSpec)
		want   []string // the lines of resolv.conf, in any order
	}{
		{"Default", v1.DNSDefault, nil, []string{"nameserver " + nodeDNS, "search node.test", "options ndots:1"}},
		{"ClusterFirst dn-2", v1.DNSClusterFirst, nil, []string{
			"nameserver " + clusterDNS, "search prod.svc.cluster.test svc.cluster.test cluster.test node.test", "options ndots:5",
		}},
		{"ClusterFirst in the host network dn-1", v1.DNSClusterFirst, func(p *v1.PodSpec) { p.HostNetwork = true },
			[]string{"nameserver " + nodeDNS, "search node.test", "options ndots:1"}},
		{"ClusterFirstWithHostNet", v1.DNSClusterFirstWithHostNet, func(p *v1.PodSpec) { p.HostNetwork = true }, []string{
			"nameserver " + clusterDNS, "search prod.svc.cluster.test svc.cluster.test cluster.test node.test", "options ndots:5",
		}},
		{"None", v1.DNSNone, func(p *v1.PodSpec) {
			p.DNSConfig = &v1.PodDNSConfig{
				Nameservers: []string{"192.0.2.53", "192.0.2.54"}, Searches: []string{"a.test", "b.test"},
				Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("3")}, {Name: "rotate"}},
			}
		}, []string{"nameserver 192.0.2.53", "nameserver 192.0.2.54", "search a.test b.test", "options ndots:3 rotate"}},
		{"ClusterFirst and more dn-6", v1.DNSClusterFirst, func(p *v1.PodSpec) {
			p.DNSConfig = &v1.PodDNSConfig{
				Nameservers: []string{"192.0.2.53"}, Searches: []string{"a.test"},
				Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}},
			}
		}, []string{
			"nameserver " + clusterDNS, "nameserver 192.0.2.53",
			"search prod.svc.cluster.test svc.cluster.test cluster.test node.test a.test", "options ndots:2",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := s.enginePod(t, script("web", "cat /etc/resolv.conf"))
			a.pod.Spec.DNSPolicy = tc.policy
			if tc.change != nil {
				tc.change(&a.pod.Spec)
			}
			a.ends()
			assert.ElementsMatch(t, tc.want, strings.Split(strings.TrimSpace(a.log("web", 0)), "\n"))
		})
	}

	node, err := os.Hostname()
	require.NoError(t, err)
	for _, tc := range []struct {
		name   string
		change func(*v1.Pod)
		want   string // the hostname; NAME is the pod's
		hosts  string // the line of /etc/hosts that has the pod's address IP
	}{
		{"the pod's name", func(*v1.Pod) {}, "NAME", "IP\tNAME"},
		{"hostname pe-18", func(p *v1.Pod) { p.Spec.Hostname = "front" }, "front", "IP\tfront"},
		{"subdomain", func(p *v1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "front", "shops" },
			"front", "IP\tfront.shops.prod.svc.cluster.test\tfront"},
		{"setHostnameAsFQDN", func(p *v1.Pod) {
			p.Spec.Hostname, p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN = "front", "shops", new(true)
		}, "front.shops.prod.svc.cluster.test", "IP\tfront.shops.prod.svc.cluster.test\tfront"},
		{"of the host network", func(p *v1.Pod) { p.Spec.HostNetwork = true }, node, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := s.enginePod(t, script("web", "hostname; cat /etc/hosts; "+serves))
			a.pod.Spec.HostAliases = []v1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"db", "db.example"}}}
			tc.change(a.pod)
			st := a.runs()
			a.waitsForLine("web", "192.0.2.9")
			name, hosts, _ := strings.Cut(a.log("web", 0), "\n")
			expand := strings.NewReplacer("NAME", a.pod.Name, "IP", strings.Join(st.IPs, ","))
			assert.Equal(t, expand.Replace(tc.want), name)
			assert.True(t, strings.HasPrefix(hosts, "# Kubernetes-managed hosts file"), hosts)
			assert.Contains(t, hosts, expand.Replace(tc.hosts)+"\n")
			assert.Contains(t, hosts, "\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example\n") // pe-17
		})
	}

	t.Run("variables", func(t *testing.T) {
		t.Parallel()
		field := func(name, path string) v1.EnvVar {
			return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}}
		}
		web := script("web", "env; echo $(NAME); "+serves)
		web.Env = []v1.EnvVar{
			field("NAME", "metadata.name"), field("NAMESPACE", "metadata.namespace"), field("UID", "metadata.uid"),
			field("IP", "status.podIP"), field("NODE_IP", "status.hostIP"), field("LABEL", "metadata.labels['app']"),
			{Name: "BOTH", Value: "$(NAMESPACE)/$(NAME) $(NONE) $$(NAME)"},
		}
		a := s.enginePod(t, web)
		a.pod.Labels = map[string]string{"app": "shop"}
		st := a.runs()
		a.waitsForLine("web", "\n"+a.pod.Name+"\n")
		require.Len(t, st.IPs, 1)
		lines := strings.Split(a.log("web", 0), "\n")
		for _, line := range []string{
			"NAME=" + a.pod.Name, "NAMESPACE=prod", "UID=" + string(a.pod.UID), "IP=" + st.IPs[0], "NODE_IP=192.0.2.99", "LABEL=shop",
			"BOTH=prod/" + a.pod.Name + " $(NONE) $(NAME)",
		} {
			assert.Contains(t, lines, line)
		}
	})
}
