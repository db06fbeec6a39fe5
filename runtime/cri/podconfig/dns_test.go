package podconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// showDNS formats a configuration as servers / searches /
// options.
func showDNS(c *runtimeapi.DNSConfig) string {
	return strings.Join([]string{strings.Join(c.Servers, " "), strings.Join(c.Searches, " "), strings.Join(c.Options, " ")}, " / ")
}

func dnsPod(spec v1.PodSpec) *v1.Pod {
	pod := &v1.Pod{Spec: spec}
	pod.Namespace, pod.Name, pod.UID = "ns", "web", "u1"
	return pod
}

func hostDNS(t *testing.T) podconfig.ResolvConf {
	host, err := podconfig.ParseResolvConf("# mine\nnameserver 192.0.2.53\nsearch old.example\nsearch corp.example. .\noptions timeout:2 rotate\n")
	require.NoError(t, err)
	return host
}

func TestDNSOfPods(t *testing.T) {
	cluster := podconfig.DNS{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local"}
	with := func(change func(*podconfig.DNS)) podconfig.DNS { d := cluster; change(&d); return d }
	noDomain := with(func(d *podconfig.DNS) { d.ClusterDomain = "" })
	noFile := with(func(d *podconfig.DNS) { d.NoResolvConf = true })
	const fromHost = "192.0.2.53 / corp.example / timeout:2 rotate"
	const fromCluster = "10.96.0.10 / ns.svc.cluster.local svc.cluster.local cluster.local corp.example / ndots:5"
	for _, tc := range []struct {
		name    string
		dns     podconfig.DNS
		spec    v1.PodSpec
		nodeIPs []string
		want    string
	}{
		{"dn-1 none", cluster, v1.PodSpec{DNSPolicy: v1.DNSNone}, nil, " /  / "},
		{"dn-1 default", cluster, v1.PodSpec{DNSPolicy: v1.DNSDefault}, nil, fromHost},
		{"dn-1 cluster first", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, nil, fromCluster},
		{"dn-1 cluster first on the host's network", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, nil, fromHost},
		{"dn-1 cluster first with host net", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet, HostNetwork: true}, nil, fromCluster},
		{"dn-1 unknown", cluster, v1.PodSpec{DNSPolicy: "Other"}, nil, fromCluster},
		{"dn-1 unknown on the host's network", cluster, v1.PodSpec{DNSPolicy: "Other", HostNetwork: true}, nil, fromHost},
		{"dn-1 no policy", cluster, v1.PodSpec{}, nil, fromCluster},
		{"dn-2 no domain", noDomain, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, nil, "10.96.0.10 / corp.example / ndots:5"},
		{"dn-2 duplicates", with(func(d *podconfig.DNS) { d.ClusterDomain = "corp.example" }), v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, nil,
			"10.96.0.10 / ns.svc.corp.example svc.corp.example corp.example / ndots:5"},
		{"dn-3 no servers", podconfig.DNS{}, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, nil, fromHost},
		{"dn-4 no file", noFile, v1.PodSpec{DNSPolicy: v1.DNSDefault}, nil, "127.0.0.1 / . / "},
		{"dn-4 no file, IPv6", noFile, v1.PodSpec{DNSPolicy: v1.DNSDefault}, []string{"2001:db8::1"}, "::1 / . / "},
		{"dn-4 no file, both", noFile, v1.PodSpec{DNSPolicy: v1.DNSDefault}, []string{"192.0.2.1", "2001:db8::1", "bad"}, "127.0.0.1 ::1 / . / "},
		{"dn-4 no file, cluster", noFile, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, nil,
			"10.96.0.10 / ns.svc.cluster.local svc.cluster.local cluster.local / ndots:5"},
		{"dn-4 no file, no servers", podconfig.DNS{NoResolvConf: true}, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, nil, "127.0.0.1 / . / "},
		{"dn-6 added", cluster, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, DNSConfig: &v1.PodDNSConfig{
			Nameservers: []string{"1.1.1.1", "10.96.0.10"}, Searches: []string{"corp.example", "x.example"},
			Options: []v1.PodDNSConfigOption{{Name: "edns0"}, {Name: "ndots", Value: new("1")}, {Name: "edns0", Value: new("")}},
		}}, nil, "10.96.0.10 1.1.1.1 / ns.svc.cluster.local svc.cluster.local cluster.local corp.example x.example / ndots:1 edns0"},
		{"dn-6 to the host's", cluster, v1.PodSpec{DNSPolicy: v1.DNSDefault, DNSConfig: &v1.PodDNSConfig{
			Options: []v1.PodDNSConfigOption{{Name: "timeout", Value: new("9")}},
		}}, nil, "192.0.2.53 / corp.example / timeout:9 rotate"},
		{"dn-6 to nothing", cluster, v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{
			Nameservers: []string{"1.1.1.1"}, Searches: []string{"."}, Options: []v1.PodDNSConfigOption{{Name: "rotate"}},
		}}, nil, "1.1.1.1 / . / rotate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host := hostDNS(t)
			got, err := tc.dns.ForPod(dnsPod(tc.spec), host, tc.nodeIPs)
			require.NoError(t, err)
			assert.Equal(t, tc.want, showDNS(got.Config))
			assert.Empty(t, got.Dropped)
			assert.Equal(t, tc.spec.DNSPolicy == "Other", got.UnknownPolicy)
			assert.Equal(t, hostDNS(t), host, "the arguments are not changed")
			assert.Equal(t, []string{"10.96.0.10"}, cluster.ClusterDNS)
		})
	}
}

// An address with a zone is one of the node's network namespace (kubernetes/kubernetes#140880).
func TestScopedNameServersOfTheNodeAreNotThoseOfPods(t *testing.T) { // dn-1
	host := podconfig.ResolvConf{Servers: []string{"fe80::1%eth0", "192.0.2.53", "fe80::2%2", "2001:db8::53", "fe80::3"}, Searches: []string{"corp.example"}}
	only := podconfig.ResolvConf{Servers: []string{"fe80::1%eth0"}, Options: []string{"rotate"}}
	own := &v1.PodDNSConfig{Nameservers: []string{"fe80::9%eth1"}}
	nodeWithout := " /  / "
	if runtime.KubernetesMinor >= 38 {
		nodeWithout = "127.0.0.1 /  / "
	}
	for _, tc := range []struct {
		name    string
		host    podconfig.ResolvConf
		spec    v1.PodSpec
		nodeIPs []string
		want    string
	}{
		{"default", host, v1.PodSpec{DNSPolicy: v1.DNSDefault}, nil, "192.0.2.53 2001:db8::53 fe80::3 / corp.example / "},
		{"cluster first without servers", host, v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, nil, "192.0.2.53 2001:db8::53 fe80::3 / corp.example / "},
		{"on the host's network", only, v1.PodSpec{DNSPolicy: v1.DNSDefault, HostNetwork: true}, nil, "fe80::1%eth0 /  / rotate"},
		{"no other", only, v1.PodSpec{DNSPolicy: v1.DNSDefault}, []string{"192.0.2.1", "2001:db8::1"}, "127.0.0.1 ::1 /  / rotate"},
		{"the node has none", podconfig.ResolvConf{}, v1.PodSpec{DNSPolicy: v1.DNSDefault}, nil, nodeWithout},
		{"the pod's own", only, v1.PodSpec{DNSPolicy: v1.DNSDefault, DNSConfig: own}, nil, "127.0.0.1 fe80::9%eth1 /  / rotate"},
		{"none", only, v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: own}, nil, "fe80::9%eth1 /  / "},
	} {
		got, err := podconfig.DNS{}.ForPod(dnsPod(tc.spec), tc.host, tc.nodeIPs)
		require.NoError(t, err, tc.name)
		assert.Equal(t, tc.want, showDNS(got.Config), tc.name)
	}
	assert.Equal(t, []string{"fe80::1%eth0"}, only.Servers, "the arguments are not changed")
	assert.Equal(t, "fe80::1%eth0", host.Servers[0], "the arguments are not changed")
}

func TestMissingClusterDNS(t *testing.T) { // dn-3
	const text = `kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`
	both := []podconfig.DNSWarning{
		{Reason: "MissingClusterDNS", Message: text, ForNode: true},
		{Reason: "MissingClusterDNS", Message: `pod: "web_ns(u1)". ` + text},
	}
	for _, tc := range []struct {
		name string
		spec v1.PodSpec
		want []podconfig.DNSWarning
	}{
		{"dn-3 cluster first", v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, both},
		{"dn-3 with host net", v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet, HostNetwork: true}, both},
		{"dn-3 not asked for", v1.PodSpec{}, nil},
		{"dn-3 the host's anyway", v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, nil},
		{"dn-3 default", v1.PodSpec{DNSPolicy: v1.DNSDefault}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podconfig.DNS{ClusterDomain: "cluster.local"}.ForPod(dnsPod(tc.spec), podconfig.ResolvConf{}, nil)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got.Warnings)
			got, err = podconfig.DNS{}.ForPod(dnsPod(tc.spec), podconfig.ResolvConf{}, nil)
			require.NoError(t, err)
			assert.Empty(t, got.Warnings, "no warnings without a cluster domain")
		})
	}
}

func TestValuesOverTheLimitsAreDroppedAndReported(t *testing.T) { // dn-7, dn-8
	names := func(n, length int) []string {
		var list []string
		for i := range n {
			s := fmt.Sprintf("s%d.", i)
			list = append(list, s+strings.Repeat("a", max(0, length-len(s))))
		}
		return list
	}
	const servers = "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
	const line = "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
	forty, long := names(40, 0), names(20, 200) // of 200 and a space, 10 fit into 2048
	huge := strings.Repeat("b", 254)
	fits := strings.Repeat("b", 253)
	for _, tc := range []struct {
		name     string
		config   v1.PodDNSConfig
		want     string // servers / searches
		dropped  []podconfig.DroppedDNS
		warnings []string
	}{
		{"dn-7 three servers", v1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.1"}}, "1.1.1.1 1.1.1.2 1.1.1.3 /  / ", nil, nil},
		{"dn-7 too many servers", v1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "::1"}},
			"1.1.1.1 1.1.1.2 1.1.1.3 /  / ", []podconfig.DroppedDNS{
				{Field: podconfig.Nameserver, Value: "1.1.1.4", Reason: podconfig.TooMany}, {Field: podconfig.Nameserver, Value: "::1", Reason: podconfig.TooMany},
			}, []string{servers + "1.1.1.1 1.1.1.2 1.1.1.3"}},
		{"dn-7 32 searches", v1.PodDNSConfig{Searches: forty[:32]}, " / " + strings.Join(forty[:32], " ") + " / ", nil, nil},
		{"dn-7 too many searches", v1.PodDNSConfig{Searches: forty[:33]}, " / " + strings.Join(forty[:32], " ") + " / ",
			[]podconfig.DroppedDNS{{Field: podconfig.Search, Value: forty[32], Reason: podconfig.TooMany}},
			[]string{line + strings.Join(forty[:32], " ")}},
		{"dn-7 a long entry", v1.PodDNSConfig{Searches: []string{"a", huge, fits}}, " / a " + fits + " / ",
			[]podconfig.DroppedDNS{{Field: podconfig.Search, Value: huge, Reason: podconfig.TooLong}}, []string{line + "a " + fits}},
		{"dn-8 a long line, from its end", v1.PodDNSConfig{Searches: long[:12]}, " / " + strings.Join(long[:10], " ") + " / ",
			[]podconfig.DroppedDNS{
				{Field: podconfig.Search, Value: long[10], Reason: podconfig.LineTooLong}, {Field: podconfig.Search, Value: long[11], Reason: podconfig.LineTooLong},
			}, []string{line + strings.Join(long[:10], " ")}},
		{"dn-7 one warning for each line", v1.PodDNSConfig{Nameservers: []string{"1", "2", "3", "4"}, Searches: append([]string{huge}, long[:11]...)},
			"1 2 3 / " + strings.Join(long[:10], " ") + " / ", []podconfig.DroppedDNS{
				{Field: podconfig.Nameserver, Value: "4", Reason: podconfig.TooMany},
				{Field: podconfig.Search, Value: huge, Reason: podconfig.TooLong}, {Field: podconfig.Search, Value: long[10], Reason: podconfig.LineTooLong},
			}, []string{servers + "1 2 3", line + strings.Join(long[:10], " ")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podconfig.DNS{}.ForPod(dnsPod(v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &tc.config}), podconfig.ResolvConf{}, nil)
			require.NoError(t, err)
			assert.Equal(t, tc.want, showDNS(got.Config))
			assert.Equal(t, tc.dropped, got.Dropped)
			var warnings []string
			for _, w := range got.Warnings {
				assert.Equal(t, "DNSConfigForming", w.Reason)
				assert.False(t, w.ForNode)
				warnings = append(warnings, w.Message)
			}
			assert.Equal(t, tc.warnings, warnings)
		})
	}
	assert.Equal(t, "search x: the entry is too long", podconfig.DroppedDNS{Field: podconfig.Search, Value: "x", Reason: podconfig.TooLong}.String())
}

func TestValuesWithLineBreaksAreRejectedInResolvConf(t *testing.T) {
	for want, config := range map[string]v1.PodDNSConfig{
		"spec.dnsConfig.nameservers[1]": {Nameservers: []string{"1.1.1.1", "1.1.1.1\noptions x"}},
		"spec.dnsConfig.searches[0]":    {Searches: []string{"a b"}},
		"spec.dnsConfig.options[1]":     {Options: []v1.PodDNSConfigOption{{Name: "a"}, {Name: "b", Value: new("1\nnameserver 6.6.6.6")}}},
		"spec.dnsConfig.options[0]":     {Options: []v1.PodDNSConfigOption{{Name: "a\x00"}}},
		"options[0]: has no name":       {Options: []v1.PodDNSConfigOption{{Value: new("x")}}},
	} {
		_, err := podconfig.DNS{}.ForPod(dnsPod(v1.PodSpec{DNSConfig: &config}), podconfig.ResolvConf{}, nil)
		assert.ErrorContains(t, err, want)
	}
}

func TestTheOrderOfOptionsIsStable(t *testing.T) { // dn-6
	config := &v1.PodDNSConfig{}
	for i := range 20 {
		config.Options = append(config.Options, v1.PodDNSConfigOption{Name: fmt.Sprintf("o%d", i)})
	}
	pod := dnsPod(v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, DNSConfig: config})
	d := podconfig.DNS{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "c"}
	first, err := d.ForPod(pod, hostDNS(t), nil)
	require.NoError(t, err)
	for range 999 {
		again, err := d.ForPod(pod, hostDNS(t), nil)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

func FuzzDNSFor(f *testing.F) {
	f.Add("ClusterFirst", "1.1.1.1,2,3,4", "a,b,a", "ndots:1,rotate")
	f.Add("None", "\n", "", ":")
	f.Fuzz(func(t *testing.T, policy, servers, searches, options string) {
		config := &v1.PodDNSConfig{Nameservers: strings.Split(servers, ","), Searches: strings.Split(searches, ",")}
		for _, o := range strings.Split(options, ",") {
			config.Options = append(config.Options, v1.PodDNSConfigOption{Name: o})
		}
		got, err := podconfig.DNS{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "c"}.
			ForPod(dnsPod(v1.PodSpec{DNSPolicy: v1.DNSPolicy(policy), DNSConfig: config}), podconfig.ResolvConf{}, nil)
		if err != nil {
			return
		}
		if len(got.Config.Servers) > 3 || len(got.Config.Searches) > 32 || len(strings.Join(got.Config.Searches, " ")) > 2048 {
			t.Fatalf("over the limits: %v", got.Config)
		}
		for _, s := range append(config.Searches, config.Nameservers...) { // dropped values must be reported
			here := s == "" || slices.Contains(got.Config.Searches, s) || slices.Contains(got.Config.Servers, s)
			if !here && !slices.ContainsFunc(got.Dropped, func(d podconfig.DroppedDNS) bool { return d.Value == s }) {
				t.Fatalf("%q is lost", s)
			}
		}
	})
}
